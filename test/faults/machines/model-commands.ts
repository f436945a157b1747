/**
 * What may happen to a server, as commands for fast-check. Numbers pick places, watches, copies and
 * revisions from the existing ones.
 */
import fc from 'fast-check';
import type { Ending, ListForm, ModelledServer, WatchForm } from './modelled-server.js';
import type { Write } from './role-model.js';
import { selectors, type Content, type Place, type RoleScope } from './roles.js';

export type Real = { readonly server: ModelledServer; readonly clock: SteppedClock | undefined };

/** The server's wall clock, if it can be moved from outside. */
export type SteppedClock = Readonly<{ step: (byMs: number) => Promise<void> }>;

type Nothing = Record<string, never>;
type Command = fc.AsyncCommand<Nothing, Real>;

type Asked = Readonly<{
  kind: Write['kind'];
  place: Place;
  tier: string;
  count: number;
  how: 'merge' | 'json' | 'strategic';
  base: 'current' | 'older';
}>;

const place = fc.record({
  shard: fc.constantFrom('amber', 'birch'),
  cluster: fc.constantFrom('acme', 'bold'),
  namespace: fc.constantFrom('x', 'y'),
  name: fc.constantFrom('a', 'b'),
});

const scope: fc.Arbitrary<RoleScope> = fc.record({
  shard: fc.constantFrom('*', '*', 'amber', 'birch'),
  cluster: fc.constantFrom('*', '*', 'acme'),
  namespace: fc.constantFrom(undefined, undefined, 'x'),
  name: fc.constantFrom(undefined, undefined, undefined, 'a'),
});

const selector = fc.constantFrom('', '', '', ...Object.keys(selectors));
const which = fc.nat(10_000);
const ending = fc.constantFrom<Ending>('SIGTERM', 'SIGKILL');

const asked: fc.Arbitrary<Asked> = fc.record({
  kind: fc.constantFrom<Write['kind']>(
    'create',
    'create',
    'create',
    'replace',
    'replace',
    'patch',
    'patch',
    'same',
    'samePatch',
    'delete',
    'delete',
  ),
  place,
  tier: fc.constantFrom('', 'tin', 'gold'),
  count: fc.constantFrom(0, 1, 30),
  how: fc.constantFrom('merge', 'json', 'strategic'),
  base: fc.constantFrom('current', 'current', 'current', 'older'),
});

const writes = fc.array(asked, { minLength: 1, maxLength: 8, size: 'max' });

const listing = fc.record({
  form: fc.constantFrom<ListForm>('present', 'present', 'zero', 'exact', 'exact', 'notOlder', 'bare', 'bare', 'future', 'foreign'),
  which,
  limit: fc.constantFrom(0, 0, 1, 3),
});

const watching = fc.record({
  form: fc.constantFrom<WatchForm>('behind', 'behind', 'initial', 'healing', 'healing'),
  which,
  bookmarks: fc.boolean(),
  slow: fc.constantFrom(false, false, false, true),
});

/**
 * TEST_WITHOUT=restore,clock leaves these commands out, so that a known defect does not hide
 * others.
 */
const leftOut = (process.env['TEST_WITHOUT'] ?? '').split(',').filter((name) => name !== '');
/** TEST_TRACE=1 prints each command as it begins. */
const isTraced = process.env['TEST_TRACE'] === '1';

/** More writes than the server has to remember. */
const floodWrites = 80;
/** More writes than may wait for a commit, and more watches than may be open. */
const crowd = 60;

export const commands: fc.Arbitrary<Iterable<Command>> = fc.commands(
  [
    writes.map((all) => command(`write ${all.map(textOf).join(', ')}`, ({ server }) => server.write(written(server, all)))),
    writes.map((all) => command(`write ${all.map(textOf).join(', ')}`, ({ server }) => server.write(written(server, all)))),
    fc
      .tuple(scope, selector, listing, fc.array(asked, { maxLength: 3 }))
      .map(([at, select, how, between]) =>
        command(`list ${JSON.stringify([at, select, how])}, between pages ${between.map(textOf).join(', ')}`, ({ server }) =>
          server.list(at, select, { ...how, between: written(server, between) }),
        ),
      ),
    fc
      .tuple(scope, selector, watching)
      .map(([at, select, how]) => command(`watch ${JSON.stringify([at, select, how])}`, ({ server }) => server.watch(at, select, how))),
    fc
      .tuple(scope, selector, watching)
      .map(([at, select, how]) => command(`watch ${JSON.stringify([at, select, how])}`, ({ server }) => server.watch(at, select, how))),
    place.map((at) => command(`get ${JSON.stringify(at)}`, ({ server }) => server.get(at))),
    which.map((one) => command(`resume ${one}`, ({ server }) => server.resume(one))),
    place.map(({ shard, cluster, namespace }) =>
      command(`clear ${shard} ${cluster} ${namespace}`, ({ server }) => server.clear({ shard, cluster, namespace })),
    ),
    asked.map((one) => command(`flood ${textOf(one)}`, ({ server }) => flood(server, one))),
    fc.constant(command('crowd of writes', ({ server }) => server.write(crowdOf(server)))),
    fc.constant(command('crowd of watches', ({ server }) => server.crowd(crowd))),
    fc.tuple(which, ending).map(([one, how]) => command(`restart ${one} ${how}`, ({ server }) => server.restart(one, how))),
    fc
      .tuple(writes, fc.nat(15), which)
      .map(([all, afterMs, one]) =>
        command(`kill ${one} ${afterMs} ms into ${all.map(textOf).join(', ')}`, ({ server }) =>
          server.write(written(server, all), { afterMs, which: one }),
        ),
      ),
    ending.map((how) => command(`copy ${how}`, ({ server }) => server.copy(how))),
    fc.tuple(which, ending).map(([one, how]) => command(`restore ${one} ${how}`, ({ server }) => server.restore(one, how))),
    fc
      .constantFrom(-3_600_000, -60_000, 60_000, 3_600_000)
      .map((byMs) => command(`clock ${byMs}`, async ({ clock }) => await clock?.step(byMs))),
  ],
  { maxCommands: 25, size: 'max' },
);

function command(text: string, run: (real: Real) => Promise<void>): Command {
  const traced = async (_: Nothing, real: Real): Promise<void> => {
    if (isTraced) process.stderr.write(`${(performance.now() / 1000).toFixed(2)} ${text}\n`);
    await run(real);
  };
  const isWanted = !leftOut.some((name) => text.startsWith(name));
  return { check: () => isWanted, run: traced, toString: () => text };
}

function written(server: ModelledServer, all: readonly Asked[]): readonly Write[] {
  return all.map(({ kind, place: at, tier, count, how, base }): Write => {
    const turn = server.turn();
    const content: Content = { turn, tier, rules: { turn, count } };
    if (kind === 'create') return { kind, place: at, content };
    if (kind === 'replace') return { kind, place: at, content, base };
    if (kind === 'patch') return { kind, place: at, how, tier, turn };
    return { kind, place: at };
  });
}

/** Replaces one object again and again, with bodies that fill a slow reader's socket. */
async function flood(server: ModelledServer, { place: at, tier }: Asked): Promise<void> {
  if (server.model.held(at) === undefined) await server.write([{ kind: 'create', place: at, content: content(server, tier) }]);
  for (let written = 0; written < floodWrites; written += 1)
    await server.write([{ kind: 'replace', place: at, content: content(server, written % 2 ? tier : 'gold'), base: 'current' }]);
}

function content(server: ModelledServer, tier: string): Content {
  const turn = server.turn();
  return { turn, tier, rules: { turn, count: 300 } };
}

function crowdOf(server: ModelledServer): readonly Write[] {
  const at = { shard: 'birch', cluster: 'bold', namespace: 'crowd' };
  return Array.from({ length: crowd }, (_, index) => {
    const turn = server.turn();
    return { kind: 'create', place: { ...at, name: `c${index}` }, content: { turn, tier: '', rules: { turn, count: 1 } } };
  });
}

function textOf({ kind, place: { shard, cluster, namespace, name }, tier }: Asked): string {
  return `${kind} ${shard}/${cluster}/${namespace}/${name} ${tier}`.trimEnd();
}
