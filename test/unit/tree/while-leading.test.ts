import { test } from '../../support/test.js';
import { whileLeading } from '../../../src/tree/while-leading.js';
import { FakePeers } from '../../support/intake/fake-peers.js';

function aServer() {
  const peers = new FakePeers();
  const stop = new AbortController();
  const said: string[] = [];
  const run = (leading: AbortSignal): Promise<void> => {
    said.push('runs');
    return new Promise((resolve) =>
      leading.addEventListener('abort', () => {
        said.push('ends');
        resolve();
      }),
    );
  };
  const done = whileLeading(peers, stop.signal, run).then(() => void said.push('is over'));
  const lead = async (sinceMs: number | undefined): Promise<void> => {
    peers.leadsSinceMs = sinceMs;
    peers.hear('b', {});
    await settled();
  };
  return { said, stop, done, lead };
}

async function settled(): Promise<void> {
  for (let i = 0; i < 10; i += 1) await Promise.resolve();
}

test('the task runs while this server leads, and again when it leads again', async (t) => {
  const { said, stop, done, lead } = aServer();
  await lead(undefined);
  t.deepEqual(said, []);
  await lead(5);
  await lead(5);
  t.deepEqual(said, ['runs']);
  await lead(undefined);
  t.deepEqual(said, ['runs', 'ends']);
  await lead(9);
  stop.abort();
  await done;
  t.deepEqual(said, ['runs', 'ends', 'runs', 'ends', 'is over']);
});

test('a server that never leads stops at once', async (t) => {
  const { said, stop, done } = aServer();
  stop.abort();
  await done;
  t.deepEqual(said, ['is over']);
});

test('a task that ends by itself is not started again', async (t) => {
  const peers = new FakePeers();
  peers.leadsSinceMs = 0;
  let runs = 0;
  await whileLeading(peers, new AbortController().signal, async () => void (runs += 1));
  t.is(runs, 1);
});
