/** kubectl at a URL with a wildcard for the shard or the logical cluster. */
import type { ExecutionContext } from 'ava';
import type { StrataProcess } from '../support/strata-process.js';
import { aPath, anApiExport } from '../support/objects.js';
import { Kubectl } from './kubectl.js';
import { kubectlLaws } from './kubectl-law.js';

const law = kubectlLaws();

law('get at a wildcard URL shows where each object is', async (t, { strata }) => {
  await place(strata, 'shown', 'amber', 'acme');
  await place(strata, 'shown', 'birch', 'beta');

  await shows(t, await at(strata, '*', '*'), ['NAME SHARD CLUSTER AGE', 'shown amber acme', 'shown birch beta']);
  await shows(t, await at(strata, '*', 'beta'), ['NAME SHARD AGE', 'shown birch']);
  await shows(t, await at(strata, 'amber', '*'), ['NAME CLUSTER AGE', 'shown acme']);
  await shows(t, await at(strata, 'amber', 'acme'), ['NAME AGE', 'shown']);
});

law('get -A shows the namespace before the name, and the shard and cluster after it', async (t, { strata }) => {
  const role = { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'Role', metadata: { name: 'reads' }, rules: [] };
  const path = aPath({ group: 'rbac.authorization.k8s.io', resource: 'roles', version: 'v1', namespace: 'default' });
  await strata.client().create(path, role);

  const { stdout } = await (await at(strata, '*', '*')).ok('get', ['roles', '-A']);

  t.deepEqual(rows(stdout, 5), ['NAMESPACE NAME SHARD CLUSTER AGE', 'default reads amber acme']);
});

law('get NAME at a wildcard URL finds a single object, and lists the places if there are several', async (t, { strata }) => {
  await place(strata, 'single', 'birch', 'beta');
  await place(strata, 'double', 'amber', 'acme');
  await place(strata, 'double', 'birch', 'beta');
  const kubectl = await at(strata, '*', '*');

  const single = await kubectl.ok('get', ['apiexports', 'single']);
  const double = await kubectl.run(['get', 'apiexports', 'double']);
  const none = await kubectl.run(['get', 'apiexports', 'none']);

  t.deepEqual(rows(single.stdout, 4), ['NAME SHARD CLUSTER AGE', 'single birch beta']);
  t.regex(double.stderr, /Error from server \(Conflict\): .*"double" is in several places \(shard\/cluster\): amber\/acme, birch\/beta/);
  t.regex(none.stderr, /Error from server \(NotFound\): apiexports\.apis\.kcp\.io "none" not found/);
});

async function shows(t: ExecutionContext, kubectl: Kubectl, expected: readonly string[]): Promise<void> {
  const columns = (expected[0] ?? '').split(' ').length;
  t.deepEqual(rows((await kubectl.ok('get', ['apiexports'])).stdout, columns), expected);
}

/** The lines of a table, without the ages in the last column. */
function rows(stdout: string, columns: number): readonly string[] {
  const lines = stdout.trimEnd().split('\n');
  return lines.map((line, i) => {
    const cells = line.trim().split(/\s+/);
    return (i === 0 ? cells : cells.slice(0, columns - 1)).join(' ');
  });
}

function at(strata: StrataProcess, shard: string, cluster: string): Promise<Kubectl> {
  return Kubectl.create(strata, { at: `/services/cache/shards/${shard}/clusters/${cluster}` });
}

async function place(strata: StrataProcess, name: string, shard: string, cluster: string): Promise<void> {
  await strata.client().create(aPath({ shard, cluster }), anApiExport({ name }));
}
