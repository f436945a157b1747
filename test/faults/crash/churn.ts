/**
 * A process that writes and compacts a store until it is killed. It prints one line of JSON for
 * each acknowledged write and each compaction.
 */
import { systemClock } from '../../../src/clock.js';
import { openSqlite } from '../../../src/store/sqlite/open-sqlite.js';
import { aDelete, aPut } from '../../support/objects.js';
import { projectFile } from '../../support/project.js';
import { silent, storeLimits } from '../../support/test-store.js';
import { seeded } from '../../support/crash/random.js';

export type Reported = Readonly<{ revision?: number; name?: string; kind?: 'put' | 'delete'; compacted?: number }>;

const [directory = '', seed = '0'] = process.argv.slice(2);
const names = 12;
const random = seeded(Number(seed));

const send = (received: Reported): void => void process.stdout.write(`${JSON.stringify(received)}\n`);
const limits = { ...storeLimits, history: { ...storeLimits.history, historyChangesMax: 30, tombstonesMax: 5 } };
const observe = { committed: () => {}, compacted: (revision: number) => send({ compacted: revision }) };
const store = await openSqlite(directory, projectFile('migrations'), limits, {
  log: silent,
  clock: systemClock,
  random: Math.random,
  observe,
});

for (;;) {
  const wanted = Array.from({ length: 1 + random.below(20) }, () => {
    const place = { name: `n${random.below(names)}`, shard: random.chance(0.5) ? 'amber' : 'birch' };
    return random.chance(0.4) ? aDelete(place) : aPut(place, 'absent', { spec: 'x'.repeat(random.below(3000)) });
  });
  const outcomes = await Promise.all(wanted.map((mutation) => store.writer.submit(mutation)));
  for (const [i, outcome] of outcomes.entries()) {
    const { kind, key } = wanted[i]!;
    if (outcome.kind === 'written') send({ revision: outcome.revision, name: `${key.shard}/${key.name}`, kind });
  }
}
