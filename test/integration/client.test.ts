import { test } from '../support/test.js';
import { openSender, parseShardName, type SliceSource } from '../../src/client.js';
import { aPath } from '../support/objects.js';
import { pushedExport, sliceOf } from '../support/raw-pusher.js';
import { aServer } from '../support/test-server.js';

/** Yields two objects, then stays silent. */
const source: SliceSource = {
  connected: true,
  open: async function* (signal) {
    yield [
      { kind: 'begin', revision: '7' },
      { kind: 'put', version: 'v1alpha2', object: pushedExport('one') },
      { kind: 'put', version: 'v1alpha2', object: pushedExport('two') },
      { kind: 'end', revision: '7' },
    ];
    await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
  },
};

test('a program pushes a slice with what the package exports, and stops on request', async (t) => {
  const server = await aServer(t);
  const { certificate, key } = server.master;
  const stopping = new AbortController();
  const sender = openSender({
    shard: 'amber',
    caches: [server.url],
    identity: { ca: server.certificate, certificate, key },
    agent: 'test 1',
  });

  sender.add(sliceOf('apiexports'), source);
  const ended = sender.run(stopping.signal);
  for await (const { slices } of sender.states(stopping.signal)) if (slices.every(({ phase }) => phase === 'synced')) break;

  t.is((await server.client().raw('GET', aPath({ name: 'two' }))).status, 200);
  stopping.abort();
  t.deepEqual(await ended, { kind: 'stopped' });
});

test('a sender that takes over gets the shard, and the earlier one is fenced', async (t) => {
  const server = await aServer(t);
  const { certificate, key } = server.master;
  const open = (takesOver: boolean) =>
    openSender({
      shard: 'amber',
      caches: [server.url],
      identity: { ca: server.certificate, certificate, key },
      agent: 'test 1',
      takesOver,
    });
  const [earlier, later, stopping] = [open(false), open(true), new AbortController()];
  earlier.add(sliceOf('apiexports'), source);
  const fenced = earlier.run(stopping.signal);
  for await (const { slices } of earlier.states(stopping.signal)) if (slices.every(({ phase }) => phase === 'synced')) break;

  const ended = later.run(stopping.signal);

  t.like(await fenced, { kind: 'refused', reason: 'fenced' });
  stopping.abort();
  t.deepEqual(await ended, { kind: 'stopped' });
});

test('an invalid shard name opens no sender', (t) => {
  const identity = { ca: undefined, certificate: '', key: '' };

  t.is(parseShardName('*'), undefined);
  t.throws(() => openSender({ shard: '*', caches: ['https://localhost:1'], identity, agent: '' }), {
    message: '"*" is no name of a shard',
  });
});
