/** Servers whose network to etcd was broken or silent for long, or slower than another server's. */
import { setTimeout as sleep } from 'node:timers/promises';
import { test } from '../../support/test.js';
import { aDelete, aKey, aPut } from '../../support/objects.js';
import { TcpProxy } from '../../support/tcp-proxy.js';
import { opened } from './open-stores.js';
import { members } from './with-members.js';

const outages: readonly (readonly [what: string, forMs: number, begin: (network: TcpProxy) => void])[] = [
  [
    'refused connections',
    28_000,
    (network) => {
      network.refuse();
      network.cut();
    },
  ],
  ['kept silent', 20_000, (network) => network.blackhole()],
];

for (const [what, forMs, begin] of outages)
  test(`writes go on within seconds after an etcd that ${what} for long is reachable again`, async (t) => {
    const etcd = await members(t);
    if (etcd === undefined) return;
    await using _ = etcd;
    const network = await TcpProxy.start(Number(new URL(etcd.endpoints[0]!).port));
    t.teardown(() => network.close());
    const store = await opened(t, etcd, { endpoints: [`http://127.0.0.1:${network.port}`] });
    await store.writer.submit(aPut({ name: 'before' }, 'absent'));
    begin(network);
    await sleep(forMs);

    network.heal();
    const beganMs = performance.now();
    const outcome = await store.writer.submit(aPut({ name: 'after' }, 'absent'));
    t.is(outcome.kind, 'written');
    const tookMs = performance.now() - beganMs;
    t.log(`${Math.round(tookMs)} ms`);
    // gRPC by itself would reconnect after 15 s, or after a minute if the outage was longer.
    t.true(tookMs < 9_000, `${tookMs} ms`);
  });

test('a server that is behind does not refuse to create an object whose delete another server has acknowledged', async (t) => {
  const etcd = await members(t);
  if (etcd === undefined) return;
  await using _ = etcd;
  const network = await TcpProxy.start(Number(new URL(etcd.endpoints[0]!).port));
  t.teardown(() => network.close());
  const one = await opened(t, etcd);
  const behind = await opened(t, etcd, { endpoints: [`http://127.0.0.1:${network.port}`] });
  network.delay(300);
  for (let i = 0; i < 5; i += 1) {
    const name = `n${i}`;
    t.is((await one.writer.submit(aPut({ name }, 'absent'))).kind, 'written');
    await behind.revisions.reachNewest();
    t.is((await one.writer.submit(aDelete({ name }))).kind, 'written');
    t.not(await behind.objects.get(aKey({ name })), undefined, 'it is behind');
    t.is((await behind.writer.submit(aPut({ name }, 'absent'))).kind, 'written');
    // The object exists, so this create is refused.
    const again = await one.writer.submit(aPut({ name }, 'absent'));
    t.is(again.kind, 'refused');
  }
});

test('when a member keeps silent while etcd is compacted up to now, only the server that watches there fails', async (t) => {
  const etcd = await members(t, { members: 3 });
  if (etcd === undefined) return;
  await using _ = etcd;
  const networks = await Promise.all(etcd.endpoints.map((url) => TcpProxy.start(Number(new URL(url).port))));
  t.teardown(() => Promise.all(networks.map((network) => network.close())));
  const endpoints = networks.map(({ port }) => `http://127.0.0.1:${port}`);
  const stores = await Promise.all(
    endpoints.map((__, i) => opened(t, etcd, { endpoints: [...endpoints.slice(i), ...endpoints.slice(0, i)] })),
  );
  networks[0]!.blackhole();
  for (const name of ['unseen', 'too']) t.is((await stores[1]!.writer.submit(aPut({ name }, 'absent'))).kind, 'written');
  const client = etcd.client(etcd.endpoints.slice(1));
  await client.compact(await client.revision());
  client.close();

  t.regex((await stores[0]!.failed).message, /has compacted the changes/);
  networks[0]!.heal();
  await sleep(5_000);
  for (const store of stores.slice(1)) {
    await store.revisions.reachNewest();
    t.true(store.isOpen);
  }
});
