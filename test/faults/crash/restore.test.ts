/**
 * `strata restore` and `strata backup` die at each of their failpoints, and a start dies while it
 * sets a damaged store aside (F2, F27). Finds a mixture of the old and the restored store, and a
 * replaced store that is lost or has lost its WAL.
 */
import { closeSync, cpSync, existsSync, openSync, readdirSync, rmSync, statSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { test } from '../../support/test.js';
import type { Failpoint } from '../../../src/diagnostics/failpoint.js';
import type { KubeClient } from '../../support/kube-client.js';
import { StrataProcess } from '../../support/strata-process.js';
import { until } from '../../support/test-server.js';
import { runStrata } from './run-strata.js';

const collection = '/services/cache/shards/amber/clusters/acme/apis/apis.kcp.io/v1alpha2/apiexports';

/** Where a restore dies, and which store the next start serves. */
const deaths: readonly (readonly [name: Failpoint, then: 'old' | 'restored'])[] = [
  ['copy.before-name', 'old'],
  ['restore.checked', 'old'],
  ['restore.named', 'restored'],
  ['aside.database', 'restored'],
  ['restore.aside', 'restored'],
  ['restore.placed', 'restored'],
];

test.serial('after a restore that was cut short, the next start serves the whole old store or the whole restored one', async (t) => {
  await using disk = await Disk.prepare();
  for (const [name, then] of deaths) {
    disk.reset();
    await diesRestoring(t, disk, name);

    await disk.server.resume();
    t.deepEqual(await disk.names(), disk[then], name);
    await disk.write(name);
    await disk.server.stop();

    t.is((await disk.run('check')).ended, 0, name);
    t.deepEqual(disk.files(/restored-/), [], name);
    if (then === 'restored') await isKept(t, disk, name);
  }
});

test.serial('the next restore completes one that was cut short, and keeps the store that was there before', async (t) => {
  await using disk = await Disk.prepare();
  for (const [name] of deaths) {
    disk.reset();
    await diesRestoring(t, disk, name);

    const again = await disk.run('restore', disk.backup);
    t.is(again.ended, 0, `${name}: ${again.said}`);
    t.deepEqual(disk.files(/restor|partial/), [], name);
    await disk.server.resume();
    t.deepEqual(await disk.names(), disk.restored, name);
    await disk.server.stop();

    t.is((await disk.run('check')).ended, 0, name);
    await isKept(t, disk, name);
  }
});

test.serial('a backup that is cut short leaves no file of the wanted name, and the next backup replaces the partial file', async (t) => {
  await using disk = await Disk.prepare();
  disk.reset();
  await disk.server.resume();
  const file = join(disk.server.folder, 'again.db');

  t.is((await disk.dies('copy.before-name', 'backup', file)).ended, 'SIGKILL');
  t.false(existsSync(file));
  t.is((await disk.run('backup', file)).ended, 0);

  t.is((await disk.run('check', file)).ended, 0);
  t.false(existsSync(`${file}.partial`));
});

test.serial(
  'when a start dies while it sets a damaged store aside, the next start completes that, and keeps the WAL beside the store',
  async (t) => {
    await using disk = await Disk.prepare();
    disk.reset();
    disk.damage();
    const log = statSync(disk.file('-wal')).size;
    t.true(log > 0);

    const starting = disk.server.resume(undefined, { STRATA_FAILPOINT: 'aside.database' }).catch(() => {});
    t.is(await disk.server.ended(), 'SIGKILL');
    await starting;
    t.false(existsSync(disk.file()));

    const standing = disk.server.resume().catch(() => {});
    const isStanding = async (): Promise<boolean> => (await disk.client.raw('GET', '/livez').catch(() => undefined))?.status === 200;
    await until(isStanding, 30_000);
    t.is((await disk.client.raw('GET', collection)).status, 503);
    const [damaged = '', ...others] = disk.files(/damaged-[^-]*$/);
    t.deepEqual(others, []);
    t.is(statSync(join(disk.data, `${damaged}-wal`), { throwIfNoEntry: false })?.size, log, 'the WAL is beside the damaged store');
    t.is((await disk.run('restore', disk.backup)).ended, 0);
    await disk.server.stop();
    await standing;
    await disk.server.resume();
    t.deepEqual(await disk.names(), disk.restored);
  },
);

/** A server, a backup of it, and its data after a later kill, with the last writes in the WAL. */
class Disk {
  readonly server: StrataProcess;
  readonly client: KubeClient;
  old: readonly string[] = [];
  restored: readonly string[] = [];

  private constructor(server: StrataProcess) {
    this.server = server;
    this.client = server.client();
  }

  static async prepare(): Promise<Disk> {
    const disk = new Disk(await StrataProcess.start());
    for (let i = 0; i < 20; i += 1) await disk.write(`both-${i}`);
    await disk.write('lost');
    await disk.run('backup', disk.backup);
    disk.restored = await disk.names();
    await disk.client.delete(`${collection}/lost`);
    await disk.server.restart('SIGTERM');
    for (let i = 0; i < 20; i += 1) await disk.write(`old-${i}`);
    disk.old = await disk.names();
    await disk.server.kill();
    cpSync(disk.data, disk.#kept, { recursive: true });
    return disk;
  }

  get backup(): string {
    return join(this.server.folder, 'backup.db');
  }

  get data(): string {
    return join(this.server.dataFolder, 'data');
  }

  get #kept(): string {
    return join(this.server.folder, 'kept');
  }

  file(suffix = ''): string {
    return join(this.data, `strata.db${suffix}`);
  }

  files(named: RegExp): readonly string[] {
    return readdirSync(this.data).filter((name) => named.test(name));
  }

  /** Puts the data back as the kill left it. */
  reset(): void {
    rmSync(this.data, { recursive: true });
    cpSync(this.#kept, this.data, { recursive: true });
  }

  damage(): void {
    const fd = openSync(this.file(), 'r+');
    for (let page = 1; page < 4; page += 1) writeSync(fd, Buffer.alloc(8192, 0x5a), 0, 8192, page * 8192);
    closeSync(fd);
  }

  run(...words: readonly string[]) {
    return runStrata(this.server, words);
  }

  dies(name: Failpoint, ...words: readonly string[]) {
    return runStrata(this.server, words, { STRATA_FAILPOINT: name });
  }

  async write(name: string): Promise<void> {
    await this.client.create(collection, { apiVersion: 'apis.kcp.io/v1alpha2', kind: 'APIExport', metadata: { name } });
  }

  async names(): Promise<readonly string[]> {
    return (await this.client.list(collection)).items.map(({ metadata }) => metadata.name!);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.server[Symbol.asyncDispose]();
  }
}

async function diesRestoring(t: ExecutionContext, disk: Disk, name: Failpoint): Promise<void> {
  const { ended, said } = await disk.dies(name, 'restore', disk.backup);
  t.is(ended, 'SIGKILL', `${name}: ${said}`);
}

/** Asserts that the store which the first restore replaced can be restored. */
async function isKept(t: ExecutionContext, disk: Disk, when: string): Promise<void> {
  const [replaced = ''] = disk.files(/replaced-[^-]*$/);
  const ran = await disk.run('restore', join(disk.data, replaced));
  t.is(ran.ended, 0, `${when}: ${ran.said}`);
  await disk.server.resume();
  t.deepEqual(await disk.names(), disk.old, `${when}: the replaced store`);
  await disk.server.stop();
}
