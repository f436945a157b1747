/**
 * The fragments of a watch on etcd: only whole revisions are delivered, and the memory for replaced
 * values is bounded.
 */
import { test } from '../../../support/test.js';
import { Fragments } from '../../../../src/store/etcd/fragments.js';
import type { WatchEvent } from '../../../../src/store/etcd/rpc.js';

function removed(revision: number, name: string, replaced: Uint8Array): WatchEvent {
  const kv = { key: Buffer.from(name), value: new Uint8Array(), revision, lease: 0 };
  return { kind: 'delete', kv, previous: { ...kv, value: replaced, revision: 1 } };
}

const names = (events: readonly WatchEvent[]): readonly string[] =>
  events.map(({ kv }) => `${Buffer.from(kv.key).toString()}@${kv.revision}`);

test('a revision is delivered once its last fragment has arrived, and never in part', (t) => {
  const fragments = new Fragments(100);
  const event = (revision: number, name: string): WatchEvent => removed(revision, name, Buffer.alloc(1));

  t.deepEqual(names(fragments.add([event(5, 'a'), event(6, 'b')], true)), ['a@5']);
  t.deepEqual(names(fragments.add([event(6, 'c')], true)), []);
  t.deepEqual(names(fragments.add([event(6, 'd'), event(7, 'e')], false)), ['b@6', 'c@6', 'd@6', 'e@7']);
  t.deepEqual(names(fragments.add([event(8, 'f')], true)), []);
  fragments.clear();
  t.deepEqual(names(fragments.add([event(8, 'f')], false)), ['f@8']);
});

test('a revision that has replaced too much is delivered with its keys only, and they share no memory with messages', (t) => {
  const fragments = new Fragments(1_000);
  const messages = Array.from({ length: 50 }, () => Buffer.alloc(4_096));

  for (const [i, message] of messages.entries()) {
    message.write(`n${i}`, 0);
    const event = removed(9, '', message.subarray(16, 416));
    t.deepEqual(fragments.add([{ ...event, kv: { ...event.kv, key: message.subarray(0, `n${i}`.length) } }], true), []);
  }
  const whole = fragments.add([removed(9, 'last', Buffer.alloc(1))], false);

  t.deepEqual(names(whole), [...messages.map((_, i) => `n${i}@9`), 'last@9']);
  const held = whole.filter(({ previous }) => previous !== undefined);
  t.true(held.length <= 4, 'a thousand bytes, and the last message');
  const buffers = new Set(messages.map(({ buffer }) => buffer));
  t.true(whole.slice(0, -5).every(({ kv }) => !buffers.has(kv.key.buffer as ArrayBuffer)));
});
