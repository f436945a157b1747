/**
 * Pushed objects that Go's clients cannot decode: the cache must refuse them to pushers and links,
 * and accept the objects beside them.
 */
import { test } from '../../support/test.js';
import type { Frame, FrameOf, PushedObject } from '../../../src/frames/frame.js';
import { shardName } from '../../support/objects.js';
import { claim, openChild } from '../../support/raw-child.js';
import { pushedExport, RawPusher, sliceOf } from '../../support/raw-pusher.js';
import { aServer, type TestServer } from '../../support/test-server.js';

const exports = sliceOf('apiexports');
const everywhere = '/services/cache/shards/*/clusters/*/apis/apis.kcp.io/v1alpha2/apiexports';

/** Members of the metadata (`metadata`) and of the whole object (`rest`). */
const undecodable: readonly (readonly [what: string, metadata: string, rest: string])[] = [
  ['a number beyond float64', '', ',"spec":{"x":1E400}'],
  ['400 digits', '', `,"spec":{"x":${'9'.repeat(400)}}`],
  ['a number in managedFields', ',"managedFields":[{"fieldsV1":{"f:x":-1E400}}]', ''],
  ['a generation of 20 digits', ',"generation":12345678901234567890', ''],
  ['an owner of two uids', ',"ownerReferences":[{"uid":5,"uid":"x"}]', ''],
  ['a time that is none', ',"managedFields":[{"time":"nonsense"}]', ''],
  ['another kind', '', ',"KIND":"Other"'],
  ['items', '', ',"items":5'],
  ['a list of items', '', ',"items":[{"kind":"APIExport","metadata":{"name":"other"}}]'],
  ['null as items', '', ',"items":null'],
  ['another metadata', '', ',"Metadata":{"name":"other"}'],
  ['another name', ',"Name":"other"', ''],
  ['another uid of an owner', ',"ownerReferences":[{"uid":"x","UID":"y"}]', ''],
  ['more levels than a list has room for', '', `,"spec":${'['.repeat(9_998)}${']'.repeat(9_998)}`],
];

function bad(metadata: string, rest: string): PushedObject {
  const text = `{"apiVersion":"apis.kcp.io/v1alpha2","kind":"APIExport","metadata":{"name":"bad","uid":"u"${metadata}}${rest}}`;
  return { ...pushedExport('bad'), body: new TextEncoder().encode(text) };
}

function refusals(frames: readonly Frame[]): readonly FrameOf<'refuse'>[] {
  return frames.filter((frame) => frame.kind === 'refuse');
}

async function names(server: TestServer): Promise<readonly (string | undefined)[]> {
  return (await server.client().list(everywhere)).items.map(({ metadata }) => metadata.name).toSorted();
}

for (const [what, metadata, rest] of undecodable) {
  test(`${what}: a pusher gets a refusal, in a sync and after it`, async (t) => {
    const server = await aServer(t);
    const pusher = await RawPusher.open(server);
    pusher.begin(exports);
    pusher.put(exports, [pushedExport('one'), bad(metadata, rest)]);
    const [refused, ...none] = refusals(await pusher.acknowledged(pusher.end(exports, 2)));

    t.deepEqual(none, []);
    t.is(refused?.reason, 'BadRequest');
    t.regex(refused?.message ?? '', /unmarshal|parsing time|another spelling|repeats a name|max depth|take it for a list/);
    const later = refusals(await pusher.acknowledged(pusher.put(exports, [bad(metadata, rest), pushedExport('two')])));
    t.is(later.length, 1);
    t.deepEqual(await names(server), ['one', 'two']);
  });

  test(`${what}: a link gets a refusal`, async (t) => {
    const server = await aServer(t, { config: `children: {east: {accept: [{shards: [amber]}]}}\n` });
    const child = await openChild(server);
    claim(child, shardName('amber'));
    child.begin(exports);
    child.put(exports, [pushedExport('one'), bad(metadata, rest)]);

    const refused = refusals(await child.acknowledged(child.end(exports, 2)));

    t.is(refused.length, 1, JSON.stringify(refused).slice(0, 500));
    t.deepEqual(await names(server), ['one']);
  });
}

test('of an object that becomes undecodable the cache keeps the last version it accepted', async (t) => {
  const server = await aServer(t);
  const pusher = await RawPusher.open(server);
  await pusher.sync(exports, [pushedExport('bad', { spec: { good: true } })]);

  await pusher.acknowledged(pusher.put(exports, [bad('', ',"spec":{"x":1E400}')]));

  const [kept] = (await server.client().list(everywhere)).items;
  t.deepEqual(kept?.['spec'], { good: true });
});
