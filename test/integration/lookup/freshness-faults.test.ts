/**
 * The answer of a list when the cache's freshness cannot be read, and the size of a look-up when
 * the cache has thousands of slices. Real sockets, real clock.
 */
import type { ExecutionContext } from 'ava';
import { largeTest } from '../../support/sizes.js';
import { test } from '../../support/test.js';
import type { ServerResponse } from 'node:http';
import { kcpTypes } from '../../../src/domain/catalogue/catalogue-kcp.js';
import { openCacheReader, type CacheReader, type LookupBounds } from '../../../src/client.js';
import { shardName } from '../../support/objects.js';
import { pushedExport, RawPusher, sliceOf } from '../../support/raw-pusher.js';
import { aServer, until } from '../../support/test-server.js';
import { aWholeChild } from '../../support/whole-child.js';
import { aReader, aRef, faultOf } from '../../support/lookup/a-reader.js';
import { CacheStandIn } from './cache-stand-in.js';

const children = `children: {'*': {accept: [{shards: ['*']}], offer: [{types: ['*']}]}}`;
const object = { kind: 'APIExport', metadata: { name: 'one', annotations: { 'kcp.io/shard': 'amber' } } };
const timeoutMs = 10_000;
/**
 * A missing answer takes the whole timeout, so it is short; every other answer may take as long as
 * a busy machine needs.
 */
const patience = { overdue: 150, answered: 5_000 };

function send(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(typeof body === 'string' ? body : JSON.stringify(body));
}

/** A reader of a cache that has one object and gives this answer about freshness. */
async function readerOf(
  t: ExecutionContext,
  freshnessTimeoutMs: number,
  answerFreshness: (response: ServerResponse) => void,
): Promise<CacheReader> {
  const cache = await CacheStandIn.start(t, ({ url = '' }, response) => {
    if (url.startsWith('/services/cache/freshness')) answerFreshness(response);
    else send(response, 200, { metadata: {}, items: [object] });
  });
  const identity = { ca: cache.certificate, certificate: cache.certificate, key: cache.key };
  const bounds: Partial<LookupBounds> = { timeoutMs, freshnessTimeoutMs, answerBytesMax: 100_000 };
  const reader = openCacheReader({ cache: cache.url, identity, bounds });
  t.teardown(() => reader.close());
  return reader;
}

const faults: readonly (readonly [string, string, (response: ServerResponse) => void])[] = [
  ['too large', 'too-long 0', (response) => send(response, 200, `{"shards":[${' '.repeat(200_000)}]}`)],
  ['an error of the server', 'refused 500 InternalError', (response) => send(response, 500, { kind: 'Status', reason: 'InternalError' })],
  ['an error of a proxy', 'unreadable 502', (response) => send(response, 502, 'Bad Gateway')],
  ['never there', 'overdue 0', () => {}],
  ['never complete', 'overdue 0', (response) => response.writeHead(200).write('{"shards":')],
  ['cut off', 'unreachable 0', (response) => response.destroy()],
  ['no JSON', 'unreadable 0', (response) => send(response, 200, 'hello')],
  ['another JSON', 'unreadable 0', (response) => send(response, 200, { shards: 'many' })],
  ['refused', 'refused 403 Forbidden', (response) => send(response, 403, { kind: 'Status', reason: 'Forbidden' })],
  ['unknown to a cache of before', 'refused 404 NotFound', (response) => send(response, 404, { kind: 'Status', reason: 'NotFound' })],
];

for (const [what, fault, answer] of faults)
  test(`an answer about freshness that is ${what} hides no object of a list`, async (t) => {
    const reader = await readerOf(t, fault.startsWith('overdue') ? patience.overdue : patience.answered, answer);

    const startedAt = performance.now();
    const listed = await reader.list(aRef());
    const elapsedMs = performance.now() - startedAt;

    t.like(listed, { kind: 'listed', whole: false, shards: [] });
    t.is((await faultOf(t, reader.freshness(aRef()))).replace(/ $/, ''), fault);
    t.true(elapsedMs < timeoutMs, `${elapsedMs} ms`);
  });

largeTest('a look-up is as small in a cache with thousands of slices as in a cache with one', async (t) => {
  const server = await aServer(t, { config: children });
  await (await RawPusher.open(server)).syncWhole(sliceOf('apiexports'), [pushedExport('one')]);
  const shards = Array.from({ length: 140 }, (_, i) => shardName(`shard-${i}`));
  const slices = shards.flatMap((shard) =>
    kcpTypes.map(({ group, resource, identity }) => ({ shard, resource: { group, resource, identity } })),
  );
  await aWholeChild(t, server, slices);
  const status = await server.client().raw('GET', '/services/cache/status');
  const reader = aReader(t, server, { bounds: { reportAgeMaxMs: 0, answerBytesMax: 40_000 } });

  t.true(status.text.length > 500_000);
  t.like(await reader.get(aRef()), { kind: 'found', shard: 'amber', freshness: { shard: 'amber', whole: true, connected: true } });
  // A late heartbeat of the child may prevent the proof at first.
  let absent = await reader.get(aRef({ name: 'none' }));
  await until(async () => {
    absent = await reader.get(aRef({ name: 'none' }));
    return absent.kind === 'absent' && absent.whole;
  });
  t.like(absent, { kind: 'absent', whole: true, shardsLeftOut: 41 });
  t.is(absent.kind === 'absent' && absent.shards.length, 100);
});
