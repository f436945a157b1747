/** The committer's thread. It receives one message at a time. */
import { parentPort, workerData } from 'node:worker_threads';
import { AnsweringCommitter } from './answering-committer.js';
import { openWriter } from './database.js';
import type { CommitterOptions, FromCommitter, ToCommitter } from './committer-messages.js';

const port = parentPort;
if (port === null) throw new Error('the committer runs in a worker thread');

const options = workerData as CommitterOptions;
const committer = new AnsweringCommitter(openWriter(options.databaseFile), options);

port.on('message', (message: ToCommitter) => {
  const answer = committer.answer(message);
  if (answer.kind === 'closed') port.close();
  port.postMessage(answer);
});
port.postMessage({ kind: 'ready' } satisfies FromCommitter);
