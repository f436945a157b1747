/** What `kubectl auth` reports for a certificate. */
import type { StrataProcess } from '../support/strata-process.js';
import { Kubectl } from './kubectl.js';
import { kubectlLaws } from './kubectl-law.js';

const law = kubectlLaws();

law('auth can-i answers for the certificate and the place of the URL', async (t, { strata }) => {
  const master = await Kubectl.create(strata);
  const own = await asShard(strata, 'amber', 'amber');
  const other = await asShard(strata, 'amber', 'birch');
  const everywhere = await asShard(strata, 'amber', '*');
  const answer = async (kubectl: Kubectl, ...args: readonly string[]): Promise<string> => {
    const { code, stdout } = await kubectl.run(['auth', 'can-i', ...args]);
    return `${code} ${stdout.trim()}`;
  };

  t.is(await answer(master, 'create', 'apiexports'), '0 yes');
  t.is(await answer(master, '*', '*'), '0 yes');
  t.is(await answer(own, 'create', 'apiexports'), '0 yes');
  t.is(await answer(own, 'get', '/metrics'), '0 yes');
  t.regex(await answer(other, 'delete', 'apiexports/one'), /^1 no - .*User "amber" cannot delete resource "apiexports"/);
  t.is(await answer(other, 'watch', 'clusterroles'), '0 yes');
  t.is(await answer(everywhere, 'list', 'apiexports'), '0 yes');
  t.regex(await answer(everywhere, 'create', 'apiexports'), /^1 no/);
});

law('auth can-i --list shows the verbs that the certificate has at this place', async (t, { strata }) => {
  const list = async (kubectl: Kubectl): Promise<string> => (await kubectl.ok('auth', ['can-i', '--list'])).stdout;

  t.regex(await list(await Kubectl.create(strata)), /\*\.\* +\[\] +\[\] +\[\* create delete/);
  t.regex(await list(await asShard(strata, 'amber', 'birch')), /\*\.\* +\[\] +\[\] +\[get list watch\]/);
});

law('auth whoami shows the name, the groups and what the certificate speaks for', async (t, { strata }) => {
  const { stdout } = await (await asShard(strata, 'amber', '*')).ok('auth', ['whoami']);

  t.regex(stdout, /Username +amber\n/);
  t.regex(stdout, /Groups +\[strata\]/);
  t.regex(stdout, /strata:\/\/shard\/amber/);
});

law('a certificate without any right may not even ask for its rights, and kubectl says so', async (t, { strata }) => {
  const dev = await Kubectl.create(strata, { as: strata.authority.issue({ user: 'dev', groups: ['developers'] }) });

  t.regex((await dev.run(['auth', 'whoami'])).stderr, /you do not have permission to call it/);
  t.regex(
    (await dev.run(['auth', 'can-i', 'get', 'apiexports'])).stderr,
    /Error from server \(Forbidden\): .*User "dev" cannot create resource "selfsubjectaccessreviews"/,
  );
});

law('`kubectl create -f` of a review prints the answer', async (t, { strata }) => {
  const kubectl = await Kubectl.create(strata);
  const spec = { resourceAttributes: { verb: 'create', group: 'apis.kcp.io', resource: 'apiexports' } };
  const file = await kubectl.file('review', { apiVersion: 'authorization.k8s.io/v1', kind: 'SelfSubjectAccessReview', spec });

  const { stdout } = await kubectl.ok('create', ['-f', file, '-o', 'jsonpath={.status.allowed}']);

  t.is(stdout, 'true');
});

/** kubectl with a shard's certificate, at a shard and one logical cluster. */
async function asShard(strata: StrataProcess, name: string, shard: string): Promise<Kubectl> {
  const as = strata.authority.issue({ user: name, groups: ['strata'], uris: [`strata://shard/${name}`] });
  return Kubectl.create(strata, { as, at: `/services/cache/shards/${shard}/clusters/acme` });
}
