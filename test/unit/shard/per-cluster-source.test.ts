/**
 * A slice that is read in parts, one for each logical cluster: what it sends, and when it counts as
 * connected, whatever its parts do.
 */
import { setImmediate as turn } from 'node:timers/promises';
import type { ExecutionContext } from 'ava';
import { test } from '../../support/test.js';
import { parseClusterName } from '../../../src/domain/cluster.js';
import type { Outgoing, SliceSource } from '../../../src/sender/source.js';
import { PerClusterSource } from '../../../src/shard/per-cluster-source.js';
import { ManualClock } from '../../support/store/manual-clock.js';

const acme = parseClusterName('acme')!;
const bold = parseClusterName('bold')!;

const begin: Outgoing = { kind: 'begin', revision: '' };
const end: Outgoing = { kind: 'end', revision: '7' };

/** A source that sends what the test gives it. */
class Part implements SliceSource {
  connected = true;
  opened = 0;
  stopped = 0;
  readonly #waiting: (readonly Outgoing[] | 'fails' | 'ends')[] = [];
  #wake = (): void => {};

  send(...batch: readonly Outgoing[]): void {
    this.#waiting.push(batch);
    this.#wake();
  }

  break(how: 'fails' | 'ends'): void {
    this.#waiting.push(how);
    this.#wake();
  }

  async *open(signal: AbortSignal): AsyncGenerator<readonly Outgoing[]> {
    this.opened += 1;
    try {
      while (!signal.aborted) {
        const next = this.#waiting.shift();
        if (next === 'ends') return;
        if (next === 'fails') throw new Error('the part broke');
        if (next !== undefined) yield next;
        else
          await new Promise<void>((resolve) => {
            this.#wake = resolve;
            signal.addEventListener('abort', () => resolve(), { once: true });
          });
      }
    } finally {
      this.stopped += 1;
    }
  }
}

function opened(t: ExecutionContext, sources: Readonly<Record<string, Part>>) {
  const clock = new ManualClock();
  const tools = { clock, isDeclared: true };
  const parts = new PerClusterSource({ clock, isDeclared: () => tools.isDeclared });
  for (const [name, source] of Object.entries(sources)) parts.setSource(parseClusterName(name)!, source);
  const abort = new AbortController();
  const words: string[] = [];
  const ended = (async () => {
    for await (const batch of parts.open(abort.signal))
      words.push(...batch.map((outgoing) => ('cluster' in outgoing ? `${outgoing.kind} ${outgoing.cluster}` : outgoing.kind)));
  })();
  t.teardown(async () => {
    abort.abort();
    await ended.catch(() => {});
  });
  const settle = async (): Promise<void> => {
    for (let i = 0; i < 10; i += 1) await turn();
  };
  return { parts, abort, words, ended, settle, tools };
}

test('the slice ends once each part was read completely, and is connected while each part is read and followed', async (t) => {
  const [one, two] = [new Part(), new Part()];
  const { parts, words, settle } = opened(t, { acme: one, bold: two });
  one.send(begin);
  two.send(begin);
  one.send(end);
  await settle();
  t.deepEqual(words, ['begin', 'clusterBegin acme', 'clusterBegin bold', 'clusterEnd acme']);
  t.false(parts.connected);

  two.send(end);
  await settle();
  t.deepEqual(words.slice(4), ['clusterEnd bold', 'end']);
  t.true(parts.connected);

  two.send(begin);
  await settle();
  t.false(parts.connected, 'it is being read again');
  two.send(end);
  await settle();
  t.true(parts.connected);
  one.connected = false;
  t.false(parts.connected);
  t.deepEqual(words.slice(6), ['clusterBegin bold', 'clusterEnd bold'], 'the slice itself goes on');
});

test('a new source is read from its beginning and the former one is stopped; a removed source leaves no objects', async (t) => {
  const [one, two, other] = [new Part(), new Part(), new Part()];
  const { parts, words, settle } = opened(t, { acme: one, bold: two });
  one.send(begin, end);
  two.send(begin, end);
  await settle();
  const before = words.length;

  parts.announce(acme);
  t.false(parts.connected, 'an edit waits');
  parts.keepSource(acme);
  t.true(parts.connected);

  parts.announce(acme);
  parts.setSource(acme, other);
  await settle();
  t.deepEqual([one.stopped, other.opened, parts.connected], [1, 1, false]);
  one.send(begin);
  other.send(begin, end);
  await settle();
  t.true(parts.connected);

  parts.setSource(bold, undefined);
  await settle();
  t.deepEqual(words.slice(before), ['clusterBegin acme', 'clusterEnd acme', 'clusterBegin bold', 'clusterEnd bold']);
  t.deepEqual([two.stopped, parts.connected], [1, true]);
});

test('a part that gets another source is removed even if it is taken away while another part leaves', async (t) => {
  const [one, two, other] = [new Part(), new Part(), new Part()];
  const parts = new PerClusterSource({ clock: new ManualClock(), isDeclared: () => true });
  parts.setSource(acme, one);
  parts.setSource(bold, two);
  const batches = parts.open(new AbortController().signal);
  one.send(begin, end);
  two.send(begin, end);
  for (let taken = 0; taken < 4; taken += 1) await batches.next();

  parts.setSource(acme, other);
  parts.setSource(bold, undefined);
  const gone = (await batches.next()).value ?? [];
  parts.setSource(acme, undefined);
  const next = (await batches.next()).value ?? [];

  const words = [...gone, ...next].map((outgoing) => ('cluster' in outgoing ? `${outgoing.kind} ${outgoing.cluster}` : outgoing.kind));
  t.deepEqual(words, ['clusterBegin bold', 'clusterEnd bold', 'clusterBegin acme', 'clusterEnd acme']);
  await batches.return();
});

test('unread changes have an age, and a slice is not connected while its declarations are unknown', async (t) => {
  const one = new Part();
  const clock = new ManualClock();
  const declared = { isKnown: true };
  const parts = new PerClusterSource({ clock, isDeclared: () => declared.isKnown });
  parts.setSource(acme, one);
  const batches = parts.open(new AbortController().signal);
  one.send(begin, end);
  for (let taken = 0; taken < 3; taken += 1) await batches.next();
  const asked = batches.next();
  for (let i = 0; i < 10; i += 1) await turn();
  t.is(parts.waitingSinceMs, undefined);

  one.send({ kind: 'delete', key: { cluster: 'acme', namespace: '', name: 'a' } });
  await asked;
  one.send({ kind: 'delete', key: { cluster: 'acme', namespace: '', name: 'b' } });
  const ahead = batches.next();
  await ahead;
  t.true(parts.connected);
  declared.isKnown = false;
  t.false(parts.connected);
  await batches.return();
});

test('an edit of a logical cluster that was read delays the end of the slice no longer than the other parts take', async (t) => {
  const [one, two, other] = [new Part(), new Part(), new Part()];
  const { parts, words, settle } = opened(t, { acme: one, bold: two });
  one.send(begin, end);
  await settle();
  parts.announce(acme);
  two.send(begin, end);
  await settle();
  t.is(words.at(-1), 'end');
  parts.setSource(acme, other);
  await settle();
  t.false(parts.connected);
});

test('the end of the slice waits for a pending edit, and for a part that was added later', async (t) => {
  const [one, two] = [new Part(), new Part()];
  const { parts, words, settle } = opened(t, { acme: one });
  parts.announce(bold);
  one.send(begin, end);
  await settle();
  t.false(words.includes('end'));

  parts.setSource(bold, two);
  await settle();
  t.false(words.includes('end'));
  two.send(begin, end);
  await settle();
  t.is(words.at(-1), 'end');
});

test('the slice ends after a minute even if a part cannot be read: that part is kept until it is read or removed', async (t) => {
  const [one, two, three, four] = [new Part(), new Part(), new Part(), new Part()];
  const { parts, words, settle, tools } = opened(t, { acme: one, bold: two, cool: three, dear: four });
  one.send(begin, end);
  four.send(begin);
  await settle();
  tools.clock.advance(59_999);
  await settle();
  t.false(words.includes('end'));

  tools.clock.advance(1);
  await settle();
  t.deepEqual(words.slice(-3), ['clusterKeep bold', 'clusterKeep cool', 'end'], 'and nothing of one that has begun');
  t.false(parts.connected);

  two.send(begin, end);
  parts.setSource(parseClusterName('cool')!, undefined);
  four.send(end);
  await settle();
  t.deepEqual(words.slice(-5).toSorted(), [
    'clusterBegin bold',
    'clusterBegin cool',
    'clusterEnd bold',
    'clusterEnd cool',
    'clusterEnd dear',
  ]);
  t.true(parts.connected);
  tools.clock.advance(600_000);
  await settle();
  t.is(words.filter((word) => word === 'end').length, 1);
});

test('a part that is added at the very end of that minute is kept, not removed', async (t) => {
  const clock = new ManualClock();
  const parts = new PerClusterSource({ clock, isDeclared: () => true });
  const [one, two] = [new Part(), new Part()];
  parts.setSource(acme, one);
  one.send(begin);
  const words: string[] = [];
  for await (const batch of parts.open(new AbortController().signal)) {
    words.push(...batch.map((outgoing) => ('cluster' in outgoing ? `${outgoing.kind} ${outgoing.cluster}` : outgoing.kind)));
    if (words.at(-1) === 'end') break;
    if (words.at(-1) !== 'clusterBegin acme') continue;
    clock.advance(60_000);
    parts.setSource(bold, two);
  }
  t.deepEqual(words, ['begin', 'clusterBegin acme', 'clusterKeep bold', 'end']);
});

test('a part that is expected and was never read is kept, and removed when it turns out to have no source', async (t) => {
  const one = new Part();
  const { parts, words, settle, tools } = opened(t, { acme: one });
  parts.announce(bold);
  one.send(begin, end);
  await settle();
  tools.clock.advance(60_000);
  await settle();
  t.deepEqual(words.slice(-2), ['clusterKeep bold', 'end']);

  parts.setSource(bold, undefined);
  await settle();
  t.deepEqual(words.slice(-2), ['clusterBegin bold', 'clusterEnd bold']);
});

test('a part that was read is not kept for an edit that is withdrawn, and an expected part without a source is removed', async (t) => {
  const [one, two] = [new Part(), new Part()];
  const { parts, words, settle, tools } = opened(t, { acme: one, bold: two });
  const cool = parseClusterName('cool')!;
  one.send(begin, end);
  await settle();
  parts.announce(acme);
  parts.announce(cool);
  tools.clock.advance(60_000);
  await settle();
  t.deepEqual(words.slice(-3).toSorted(), ['clusterKeep bold', 'clusterKeep cool', 'end']);

  parts.keepSource(acme);
  parts.keepSource(cool);
  await settle();
  t.deepEqual(words.slice(-2), ['clusterBegin cool', 'clusterEnd cool']);
  two.send(begin, end);
  await settle();
  t.true(parts.connected);
});

test('the minute also ends while other parts always have their next changes ready', async (t) => {
  const clock = new ManualClock();
  const parts = new PerClusterSource({ clock, isDeclared: () => true });
  const busy: SliceSource = {
    connected: true,
    open: async function* () {
      yield [begin, end];
      for (;;) yield [{ kind: 'delete', key: { cluster: 'acme', namespace: '', name: 'one' } }];
    },
  };
  parts.setSource(acme, busy);
  parts.setSource(parseClusterName('cool')!, busy);
  parts.setSource(bold, new Part());
  let batches = 0;
  for await (const batch of parts.open(new AbortController().signal)) {
    batches += 1;
    clock.advance(1_000);
    await turn();
    if (batch.at(-1)?.kind === 'end' || batches === 1_000) break;
  }
  t.true(batches < 100, `${batches} batches`);
});

test('if more parts are unread than can be kept, the slice has no end until fewer are', async (t) => {
  const parts = Object.fromEntries(Array.from({ length: 10_001 }, (_, i) => [`c${i}`, new Part()]));
  const { words, settle, tools } = opened(t, parts);
  await settle();
  tools.clock.advance(600_000);
  await settle();
  t.deepEqual(words, ['begin']);

  const [first, ...others] = Object.values(parts);
  first?.send(begin, end);
  while (!words.includes('end')) await settle();
  t.is(words.filter((word) => word.startsWith('clusterKeep')).length, 10_000, 'the others');
  for (const part of others) part.send(begin, end);
  while (words.length < 30_003) await settle();
  t.is(words.filter((word) => word === 'end').length, 1);
});

for (const how of ['fails', 'ends'] as const)
  test(`a part that ${how} fails the slice, so that it is opened again, and stops all parts`, async (t) => {
    const [one, two] = [new Part(), new Part()];
    const { ended, settle } = opened(t, { acme: one, bold: two });
    await settle();

    one.break(how);

    await t.throwsAsync(ended, { message: how === 'fails' ? 'the part broke' : /acme has ended/ });
    t.deepEqual([one.stopped, two.stopped], [1, 1]);
  });

test('a slice that is stopped and opened again starts over', async (t) => {
  const [one, two] = [new Part(), new Part()];
  const { parts, abort, ended, settle } = opened(t, { acme: one, bold: two });
  one.send(begin, end);
  two.send(begin, end);
  await settle();

  abort.abort();
  await ended;
  t.deepEqual([one.stopped, two.stopped, parts.connected], [1, 1, false]);

  const again = new AbortController();
  const words: string[] = [];
  const reading = (async () => {
    for await (const batch of parts.open(again.signal)) words.push(...batch.map(({ kind }) => kind));
  })();
  one.send(begin, end);
  two.send(begin, end);
  await settle();
  t.deepEqual(words, ['begin', 'clusterBegin', 'clusterEnd', 'clusterBegin', 'clusterEnd', 'end']);
  again.abort();
  await reading;
});
