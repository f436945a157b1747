/** What servers that share one etcd publish to each other, in its stored form. */
import { test } from '../../../support/test.js';
import { formatServerRecord, parseServerRecord } from '../../../../src/store/etcd/records.js';
import { shardName } from '../../../support/objects.js';
import { pushersOf } from '../../../support/intake/fake-peers.js';

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
