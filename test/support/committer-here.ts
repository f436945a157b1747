/**
 * Runs the committer in the thread of the test, because a thread of its own takes 70 to 110 ms of
 * the processor to start. As between threads, each message is copied and arrives in a later turn.
 * One thing differs: nothing else runs while it commits.
 */
import { EventEmitter } from 'node:events';
import type { Transferable } from 'node:worker_threads';
import { AnsweringCommitter } from '../../src/store/sqlite/answering-committer.js';
import { openWriter } from '../../src/store/sqlite/database.js';
import type { CommitterOptions, CommitterThread, ToCommitter } from '../../src/store/sqlite/committer-messages.js';

export async function startCommitterHere(options: CommitterOptions): Promise<CommitterThread> {
  const events = new EventEmitter();
  const committer = new AnsweringCommitter(openWriter(options.databaseFile), options);
  let isOver = false;
  const end = (code: number): void => {
    if (isOver) return;
    isOver = true;
    setImmediate(() => events.emit('exit', code));
  };
  return Object.assign(events, {
    postMessage: (message: ToCommitter, transfer: readonly Transferable[] = []) => {
      const received = structuredClone(message, { transfer: [...transfer] as ArrayBuffer[] });
      setImmediate(() => {
        if (isOver) return;
        try {
          const answer = structuredClone(committer.answer(received));
          setImmediate(() => events.emit('message', answer));
          if (answer.kind === 'closed') end(0);
        } catch (error) {
          setImmediate(() => events.emit('error', error));
          end(1);
        }
      });
    },
    terminate: async () => {
      end(1);
      return 1;
    },
  }) as unknown as CommitterThread;
}
