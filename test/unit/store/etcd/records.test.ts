/** What servers of one etcd say to each other, as it is kept there. */
import { test } from '../../../support/test.js';
import { formatServerRecord, parseServerRecord } from '../../../../src/store/etcd/records.js';
import { shardName } from '../../../support/objects.js';
import { pushersOf } from '../../../support/intake/fake-peers.js';

const amber = shardName('amber');

/** What is read of a pusher of which another server says this, beside the rest. */
function read(more: Readonly<Record<string, unknown>>) {
  const pusher = { peer: 'p', isHeld: true, connected: true, lagMs: 0, whole: false, ...more };
  return parseServerRecord(Buffer.from(JSON.stringify({ pushers: { amber: pusher }, heard: {} })))?.pushers.get(amber);
}

test('a server reads of another one what that has said, types that lack as well', (t) => {
  const said = { pushers: pushersOf(amber, { whole: false, lacks: new Set(['a.b:', 'c:h']) }), heard: new Map([[amber, 7]]) };

  t.deepEqual(parseServerRecord(formatServerRecord(said)), said);
});

test('types that lack count as not named where another server names none, or nothing that can be read', (t) => {
  for (const lacks of [undefined, null, [], {}, 'a.b:', [7], ['a.b:', null]]) {
    const pusher = read({ lacks });
    t.is(pusher?.whole, false, JSON.stringify(lacks));
    t.false('lacks' in pusher!, JSON.stringify(lacks));
  }
  t.is(read({ peer: 7 }), undefined);
});
