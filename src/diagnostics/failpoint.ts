/**
 * Named places in which a test has the process die as by kill -9, at moments that no timing hits (F1, F2; etcd does the same with gofail).
 * The environment arms one of them, as `commit.before`, or as `commit.before:3`: when the process gets there for the third time.
 *
 * `test/faults/crash/failpoints` kills at each of them, and test/house checks that each is in code once. A call that is not armed compares two constants.
 */
export const failpoints = [
  // A group commit: all is written and nothing committed; all is durable and nobody has been answered.
  'commit.before',
  'commit.after',
  // One step of an `end` or a removal has deleted what it may.
  'sweep.step',
  // Rows are gone, and the compacted revision has not risen; all is committed.
  'compaction.before',
  'compaction.after',
  // The writer makes the log start over.
  'log.before-restart',
  'log.after-restart',
  // A stop: noted as closed, its log not yet empty; empty, and still open.
  'close.noted',
  'close.truncated',
  // A start: in the transaction that begins the epoch, and after it.
  'epoch.before',
  'epoch.after',
  // An older schema: a copy of it is made; the file is rewritten; each step's statements; all is committed.
  'migration.copied',
  'migration.rewritten',
  'migration.step',
  'migration.after',
  // A copy is whole and has no name yet: of a backup, a restore, a migration.
  'copy.before-name',
  // A restore, from rename to rename; the first of `aside` is also that of a damaged store.
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

/** Undefined when there is no failpoint of that name. */
export function parseFailpoint(text: string): Readonly<{ name: Failpoint; time: number }> | undefined {
  const [, called, time = '1'] = /^([a-z.-]+)(?::([1-9]\d{0,8}))?$/.exec(text) ?? [];
  const name = failpoints.find((each) => each === called);
  return name === undefined ? undefined : { name, time: Number(time) };
}
