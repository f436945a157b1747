/**
 * Litestream beside a server as in docs/backup.md, with files in the place of S3. It must ship what
 * the server writes, also after Litestream was down, so that a store restored elsewhere and the
 * shard's agent together have everything. Needs litestream (or TEST_LITESTREAM_BIN); the log says
 * when the test is skipped without it.
 */
import { rmSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { once } from 'node:events';
import { join } from 'node:path';
import { installed, runProgram } from '../../clients/installed.js';
import { AgentProcess } from '../../support/agent-process.js';
import { spawn } from '../../support/children.js';
import { ShardStandIn } from '../../support/shard-stand-in.js';
import { StrataProcess } from '../../support/strata-process.js';
import { test } from '../../support/test.js';
import { until } from '../../support/test-server.js';
import { runStrata } from './run-strata.js';

const program = process.env['TEST_LITESTREAM_BIN'] ?? 'litestream';
const collection = '/services/cache/shards/amber/clusters/root/apis/apis.kcp.io/v1alpha2/apiexports';
/** So many objects of this size are more than the WAL holds before SQLite starts it over. */
const many = 300;
const filler = 'x'.repeat(50_000);

test('what Litestream has shipped can be restored elsewhere, and the agent of the shard pushes what is missing', async (t) => {
  if ((await installed(program, 'version')) === undefined) {
    t.log('SKIPPED: litestream is not installed');
    t.pass();
    return;
  }
  t.timeout(180_000);
  const shard = await ShardStandIn.start();
  t.teardown(() => shard.close());
  let made = 0;
  const make = (count: number): void => {
    for (let i = 0; i < count; i += 1)
      shard.store.put('apiexports.apis.kcp.io', 'root', { metadata: { name: `e${(made += 1)}`, annotations: { filler } } });
  };
  await using server = await StrataProcess.start();
  const objectsOf = async (at: StrataProcess): Promise<number> => (await at.client().list(collection)).items.length;
  const config = join(server.folder, 'litestream.yml');
  const database = join(server.dataFolder, 'data', 'strata.db');
  const replica = { type: 'file', path: join(server.folder, 'replica'), 'sync-interval': '1s' };
  await writeFile(config, JSON.stringify({ dbs: [{ path: database, replica }] }));
  const replicate = () => spawn(program, ['replicate', '-config', config], { stdio: 'ignore' });
  const copy = join(server.folder, 'copy.db');
  /** Restores what Litestream has shipped into `copy`; resolves with its number of objects. */
  const shipped = async (): Promise<number> => {
    rmSync(copy, { force: true });
    const { code } = await runProgram(program, ['restore', '-config', config, '-o', copy, database], { timeoutMs: 60_000 });
    if (code !== 0) return 0;
    const { ended, printed, said } = await runStrata(server, ['check', copy]);
    if (ended !== 0) throw new Error(`${printed}${said}`);
    return Number(/^objects\s+sound\s+(\d+)/m.exec(printed)?.[1]);
  };

  let litestream = replicate();
  await using agent = await AgentProcess.start(server, { shard: 'amber', kubeconfig: shard.kubeconfig });
  make(many);
  await until(async () => (await objectsOf(server)) === made);
  await until(async () => (await shipped()) >= made);
  litestream.kill('SIGKILL');
  await once(litestream, 'exit');
  make(many);
  await until(async () => (await objectsOf(server)) === made);
  litestream = replicate();
  await until(async () => (await shipped()) >= made);
  const before = made;

  make(many);
  await until(async () => (await objectsOf(server)) > before);
  await Promise.all([server.kill(), agent.kill()]);
  litestream.kill('SIGKILL');

  t.true((await shipped()) >= before);
  await using elsewhere = await StrataProcess.start({ authority: server.authority });
  await elsewhere.stop();
  const { ended, said } = await runStrata(elsewhere, ['restore', copy]);
  t.is(ended, 0, said);
  await elsewhere.resume();
  const restored = await objectsOf(elsewhere);
  await using other = await AgentProcess.start(elsewhere, { shard: 'amber', kubeconfig: shard.kubeconfig });
  await until(async () => (await objectsOf(elsewhere)) === made);
  t.true(restored >= before, `${restored} of ${made} restored`);
  t.log(`${restored} of ${made} were restored, and the agent pushed the others`);
  t.is(await other.stop(), 0);
});
