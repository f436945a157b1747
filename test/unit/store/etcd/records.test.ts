/**
 * The stored form of records. Finds a change after which a server no longer reads what an earlier
 * commit wrote: an upgrade would then lose who has which shard, and sync everything.
 */
import { test } from '../../../support/test.js';
import { formatRecordKey, formatServerRecord, parseRecord, parseRecordKey, parseServerRecord } from '../../../../src/store/etcd/records.js';
import { shardName } from '../../../support/objects.js';
import { pushersOf } from '../../../support/intake/fake-peers.js';
import { firstSlice, olderPrefix, olderRecords } from '../../../support/store/older-records.js';

const amber = shardName('amber');

/** The pusher in another server's record with these extra members. */
function read(more: Readonly<Record<string, unknown>>) {
  const pusher = { peer: 'p', isHeld: true, connected: true, lagMs: 0, whole: false, ...more };
  return parseServerRecord(Buffer.from(JSON.stringify({ pushers: { amber: pusher }, lastWrites: {} })))?.pushers.get(amber);
}

test('a server reads what another server has published, including the types that are not whole', (t) => {
  const said = { pushers: pushersOf(amber, { whole: false, lacks: new Set(['a.b:', 'c:h']) }), lastWrites: new Map([[amber, 7]]) };

  t.deepEqual(parseServerRecord(formatServerRecord(said)), said);
});

test('types that are not whole count as not named if another server names none, or sends a list that cannot be read', (t) => {
  for (const lacks of [undefined, null, [], {}, 'a.b:', [7], ['a.b:', null]]) {
    const pusher = read({ lacks });
    t.is(pusher?.whole, false, JSON.stringify(lacks));
    t.false('lacks' in pusher!, JSON.stringify(lacks));
  }
  t.is(read({ peer: 7 }), undefined);
});

for (const [text, key, value] of olderRecords)
  test(`a record of an earlier commit is read whole, under the key that it has: ${text}`, (t) => {
    t.deepEqual(parseRecordKey(olderPrefix, text), key);
    t.is(formatRecordKey(olderPrefix, key), text);
    const parsed = parseRecord(key, Buffer.from(value));
    t.deepEqual(JSON.parse(JSON.stringify(parsed ?? null)), JSON.parse(value));
  });

test('the record of a slice from before servers named each other in it counts as absent', (t) => {
  const slice = olderRecords.find(([, { kind }]) => kind === 'slice')!;
  t.is(parseRecord(slice[1], Buffer.from(firstSlice)), undefined);
});
