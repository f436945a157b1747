/**
 * Named places in which a test kills the process as kill -9 does (docs/guarantees.md, F1, F2). A
 * test could not hit these moments by timing a kill. etcd has gofail for the same purpose. The
 * environment arms one of the places. `commit.before` kills at the first pass, `commit.before:3` at
 * the third.
 *
 * `test/faults/crash/failpoints` kills at each place, and test/house checks that the code contains
 * each once. A call that is not armed compares two constants.
 *
 * A comment below describes the moments of the failpoints that follow it, in their order, separated
 * by semicolons.
 */
export const failpoints = [
  // A group commit: everything is written and nothing committed; everything is durable and no
  // writer was answered.
  'commit.before',
  'commit.after',
  // One step of an `end` or a removal has deleted its rows.
  'sweep.step',
  // Compaction: rows are deleted and the compacted revision has not risen; everything is committed.
  'compaction.before',
  'compaction.after',
  // The writer restarts the log: before; after.
  'log.before-restart',
  'log.after-restart',
  // A stop: the store is marked closed and its log is not empty yet; the log is empty and still
  // open.
  'close.noted',
  'close.truncated',
  // A start: in the transaction that begins the epoch; after it.
  'epoch.before',
  'epoch.after',
  // A migration: a copy of the older file is made; the file is rewritten; one step's statements are
  // done; everything is committed.
  'migration.copied',
  'migration.rewritten',
  'migration.step',
  'migration.after',
  // A copy of a backup, a restore or a migration is whole and has no name yet.
  'copy.before-name',
  // A restore, between its renames. A start that moves a damaged database aside passes
  // `aside.database`, too.
  'restore.checked',
  'restore.named',
  'aside.database',
  'restore.aside',
  'restore.placed',
] as const;

export type Failpoint = (typeof failpoints)[number];

export const failpointVariable = 'STRATA_FAILPOINT';

const armed = parseFailpoint(process.env[failpointVariable] ?? '');
let times = 0;

export function failpoint(name: Failpoint): void {
  if (armed?.name !== name) return;
  times += 1;
  if (times === armed.time) process.kill(process.pid, 'SIGKILL');
}

/** Undefined if no failpoint has that name. */
export function parseFailpoint(text: string): Readonly<{ name: Failpoint; time: number }> | undefined {
  const [, called, time = '1'] = /^([a-z.-]+)(?::([1-9]\d{0,8}))?$/.exec(text) ?? [];
  const name = failpoints.find((each) => each === called);
  return name === undefined ? undefined : { name, time: Number(time) };
}
