/**
 * Compares every watcher's stream with the full one, for commits, selectors, reading habits and
 * bounds that fast-check generates.
 */
import { rounds } from '../../support/sizes.js';
import { test } from '../../support/test.js';
import fc from 'fast-check';
import type { WatchStart } from '../../../src/domain/ports.js';
import { labelsOf } from '../../../src/domain/object-metadata.js';
import { matches } from '../../../src/domain/scope.js';
import { aScope, type Place } from '../../support/objects.js';
import { validate } from '../../support/validators.js';
import type { Change, SeenEvent, SeenWatch } from '../../support/watch-history.js';
import { aHub, aWatch, everything, selecting } from './a-hub.js';
import { ASink } from './a-sink.js';
import type { MemoryStore, Step } from './memory-store.js';
import { keyText, plainEvents, Reader, turns } from './plain-events.js';

const clusters = ['acme', 'beta'] as const;
const names = ['a', 'b', 'c'] as const;
const teams = ['red', 'blue'] as const;

type Action =
  | Readonly<{ kind: 'commit'; writes: readonly Write[]; isAtOnce: boolean }>
  | Readonly<{ kind: 'open'; scope: number; selected: boolean; start: 'initial' | 'named' | 'behind'; bookmarks: boolean }>
  | Readonly<{ kind: 'read'; who: number; batches: number }>
  | Readonly<{ kind: 'sink'; who: number; isFull: boolean }>
  | Readonly<{ kind: 'bookmarks' }>
  | Readonly<{ kind: 'wait'; ms: number }>
  | Readonly<{ kind: 'end'; who: number }>
  | Readonly<{ kind: 'cut'; who: number; lost: number }>;

type Write = Readonly<{ place: Place; team: (typeof teams)[number]; remove: boolean }>;

const scopes = [{}, { cluster: 'acme' }, { shard: 'amber' }, { name: 'a' }] satisfies Place[];

const write: fc.Arbitrary<Write> = fc.record({
  place: fc.record({ cluster: fc.constantFrom(...clusters), name: fc.constantFrom(...names), shard: fc.constantFrom('amber', 'birch') }),
  team: fc.constantFrom(...teams),
  remove: fc.boolean(),
});

const action: fc.Arbitrary<Action> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('commit' as const), writes: fc.array(write, { minLength: 1, maxLength: 5 }), isAtOnce: fc.boolean() }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('open' as const), scope: fc.nat(scopes.length - 1), selected: fc.boolean(), start: fc.constantFrom('initial' as const, 'named' as const, 'behind' as const), bookmarks: fc.constant(true) }) },
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('read' as const), who: fc.nat(5), batches: fc.integer({ min: 1, max: 3 }) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('sink' as const), who: fc.nat(5), isFull: fc.boolean() }) },
  { weight: 1, arbitrary: fc.constant({ kind: 'bookmarks' as const }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('wait' as const), ms: fc.nat(60) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('end' as const), who: fc.nat(5) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('cut' as const), who: fc.nat(5), lost: fc.nat(4) }) },
); // prettier-ignore

type Opened = { reader: Reader; sink: ASink; end: () => void; open: Asked; seen: Omit<SeenWatch, 'events'>; cut?: readonly SeenEvent[] };

type Asked = Readonly<{ scope: number; selected: boolean; bookmarks: boolean }>;

function commit(store: MemoryStore, { writes, isAtOnce }: Action & { kind: 'commit' }): void {
  const steps: Step[] = [];
  const written = new Set<string>();
  const standing = new Set(
    truth(store).reduce(
      (keys: string[], change) => (change.kind === 'put' ? [...keys, change.key] : keys.filter((key) => key !== change.key)),
      [],
    ),
  );
  for (const { place, team, remove } of writes) {
    const key = [place.shard, place.cluster, '', place.name].join('|');
    // A transaction of etcd writes each key at most once.
    if (isAtOnce && written.has(key)) continue;
    const step: Step | undefined = remove ? (standing.has(key) ? { delete: place } : undefined) : { put: place, labels: { team } };
    if (step === undefined) continue;
    if (remove) standing.delete(key);
    else standing.add(key);
    written.add(key);
    steps.push(step);
  }
  if (steps.length === 0) return;
  if (isAtOnce) store.commitAtOnce(...steps);
  else for (const step of steps) store.commit(step);
}

function truth(store: MemoryStore): readonly Change[] {
  return store.log.map((change) => ({
    kind: change.kind,
    key: keyText(change.key),
    position: BigInt(change.revision),
    labels: change.kind === 'put' ? Object.fromEntries(labelsOf(change.object.body)) : {},
  }));
}

test('whatever is committed, however slow the reader and however small the queue, a stream is its part of the full one', async (t) => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(action, { minLength: 5, maxLength: 40 }),
      fc.integer({ min: 60, max: 600 }),
      fc.integer({ min: 1, max: 3 }),
      fc.constantFrom(0, 12),
      async (actions, queueBytesMax, rowsMax, handOutMs) => {
        const { hub, store, clock } = aHub({ queueBytesMax, pieceBytesMax: 200, handOutMs });
        store.rowsMax = rowsMax;
        store.between = async () => void (await turns(1));
        store.commit({ put: { name: 'first' } });
        const opened: Opened[] = [];

        for (const next of actions) {
          const chosen = 'who' in next ? opened[next.who % Math.max(1, opened.length)] : undefined;
          if (next.kind === 'commit') commit(store, next);
          else if (next.kind === 'bookmarks') clock.advance(60_000);
          else if (next.kind === 'wait') clock.advance(next.ms);
          else if (next.kind === 'open') opened.push(open(opened.length, next));
          else if (next.kind === 'cut') {
            if (chosen !== undefined) cut(chosen, next.lost);
          } else if (next.kind === 'end') chosen?.end();
          else if (next.kind === 'sink') {
            if (chosen !== undefined) chosen.sink.isFull = next.isFull;
          } else for (let i = 0; i < next.batches; i++) await chosen?.reader.step();
        }
        // Once for what waits, and once for what is handed out after it.
        for (let i = 0; i < 2; i++) {
          clock.advance(100);
          for (const { reader } of opened) await reader.drain();
        }

        const watches = opened.map(({ reader, seen, cut }) => ({ ...seen, events: cut ?? reader.events, isCut: cut !== undefined }));
        t.deepEqual(validate({ truth: truth(store), watches, lists: [] }), []);
        for (const { reader } of opened.filter(({ reader }) => !reader.ended)) void reader.leave();
        hub.endAll();
        await turns(30);
        t.is(hub.openWatches, 0);
        t.is(store.openSnapshots, 0);

        /** The last events never arrive, and the client continues from what it has. */
        function cut(chosen: Opened, lost: number): void {
          const { seen, reader } = chosen;
          if (chosen.cut !== undefined || seen.began.kind !== 'behind') return;
          chosen.cut = reader.events.slice(0, Math.max(0, reader.events.length - lost));
          chosen.end();
          const position = chosen.cut.at(-1)?.position ?? seen.began.position;
          opened.push(
            follow(opened.length, chosen.open, { kind: 'after', revision: Number(position) }, { kind: 'behind', position }, seen.id),
          );
        }

        function open(id: number, { start: how, ...asked }: Action & { kind: 'open' }): Opened {
          const since = Math.floor(store.published / 2) + (how === 'named' ? 1 : 0);
          const start: WatchStart =
            how === 'behind'
              ? { kind: 'after', revision: since }
              : { kind: 'initial', endsWithBookmark: true, forgetSince: how === 'named' ? Math.min(since, store.published) : undefined };
          const began =
            how === 'behind'
              ? ({ kind: 'behind', position: BigInt(since) } as const)
              : ({ kind: 'initial', ...(how === 'named' ? { named: BigInt(since) } : {}) } as const);
          return follow(id, asked, start, began);
        }

        function follow(id: number, asked: Asked, start: WatchStart, began: SeenWatch['began'], resumes?: string): Opened {
          const { scope: place, selected, bookmarks } = asked;
          const scope = aScope(scopes[place]);
          const sink = new ASink({ isFull: id % 2 === 0 });
          const watch = hub.open(
            aWatch({
              sink,
              scope,
              start,
              bookmarks,
              selector: selected ? selecting('team=red') : everything,
              representation: plainEvents(),
              timeoutMs: 1e12,
            }),
          );
          const covers = (key: string): boolean => {
            const [shard, cluster, , name] = key.split('|') as [string, string, string, string];
            return matches(scope, {
              resource: { group: scope.group, resource: scope.resource, identity: '' },
              shard,
              cluster,
              namespace: '',
              name,
            } as Parameters<typeof matches>[1]);
          };
          const reader = new Reader(watch);
          sink.write = (pieces) => reader.take(pieces);
          return {
            reader,
            sink,
            end: () => watch.end(),
            open: asked,
            seen: {
              id: String(id),
              began,
              covers,
              ...(selected ? { selects: ({ labels }) => labels['team'] === 'red' } : {}),
              ...(resumes === undefined ? {} : { resumes }),
            },
          };
        }
      },
    ),
    { numRuns: rounds(150) },
  );
});
