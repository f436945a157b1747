import { test } from '../../support/test.js';
import type { KubeStatus } from '../../support/kube-client.js';
import { aPath, anApiExport } from '../../support/objects.js';
import { shared } from '../../support/shared.js';
import { TestServer } from '../../support/test-server.js';

const rbac = '/services/cache/shards/amber/clusters/acme/apis/rbac.authorization.k8s.io/v1';
const apiVersion = 'rbac.authorization.k8s.io/v1';

const server = shared(
  async () => {
    const made = await TestServer.start();
    const client = made.client();
    await client.create(aPath(), anApiExport());
    await client.create(`${rbac}/clusterroles`, { apiVersion, kind: 'ClusterRole', metadata: { name: 'a' } });
    for (const namespace of ['x', 'y'])
      await client.create(`${rbac}/namespaces/${namespace}/roles`, { apiVersion, kind: 'Role', metadata: { name: 'a', namespace } });
    return made;
  },
  (made) => made.close(),
);

async function ask(method: string, path: string): Promise<string> {
  const { status, text } = await (await server()).client().raw(method, path);
  if (status === 200) return '200';
  const { reason, message } = JSON.parse(text) as KubeStatus;
  return `${status} ${reason}: ${message}`;
}

async function stored(): Promise<string> {
  const client = (await server()).client();
  const lists = await Promise.all([aPath(), `${rbac}/clusterroles`, `${rbac}/roles`].map((path) => client.list(path)));
  return JSON.stringify(lists.map(({ items }) => items));
}

const notFound = (what: string, version = 'v1'): string =>
  `404 NotFound: the server could not find the requested resource (${what}, version ${version})`;

test('a cluster-scoped type is in no namespace, and a collection delete of a namespaced type needs one namespace', async (t) => {
  const before = await stored();

  for (const [method, path, expected] of [
    ['GET', `${rbac}/namespaces/x/clusterroles`, notFound('clusterroles.rbac.authorization.k8s.io')],
    ['GET', `${rbac}/namespaces/x/clusterroles?watch=true&timeoutSeconds=1`, notFound('clusterroles.rbac.authorization.k8s.io')],
    ['GET', `${rbac}/watch/namespaces/x/clusterroles?timeoutSeconds=1`, notFound('clusterroles.rbac.authorization.k8s.io')],
    ['GET', `${rbac}/watch/namespaces/x/clusterroles/a?timeoutSeconds=1`, notFound('clusterroles.rbac.authorization.k8s.io')],
    ['GET', aPath({ namespace: 'x', shard: '*', cluster: '*' }), notFound('apiexports.apis.kcp.io', 'v1alpha2')],
    ['DELETE', `${rbac}/namespaces/x/clusterroles`, notFound('clusterroles.rbac.authorization.k8s.io')],
    ['DELETE', aPath({ namespace: 'x' }), notFound('apiexports.apis.kcp.io', 'v1alpha2')],
    ['DELETE', `${aPath({ namespace: 'x' })}?dryRun=All`, notFound('apiexports.apis.kcp.io', 'v1alpha2')],
    ['DELETE', `${rbac}/roles`, notFound('roles.rbac.authorization.k8s.io')],
    ['DELETE', `${rbac}/roles?labelSelector=a`, notFound('roles.rbac.authorization.k8s.io')],
    ['DELETE', `${rbac}/roles/a`, '404 NotFound: roles.rbac.authorization.k8s.io "a" not found'],
    ['DELETE', `${rbac}/namespaces/x/clusterroles/a`, '404 NotFound: clusterroles.rbac.authorization.k8s.io "a" not found'],
    ['GET', `${rbac}/namespaces/x/clusterroles/a`, '404 NotFound: clusterroles.rbac.authorization.k8s.io "a" not found'],
  ] as const)
    t.is(await ask(method, path), expected, `${method} ${path}`);

  t.is(await stored(), before);
});

test('a cluster-scoped type cannot be selected by namespace, in a list, a watch and a collection delete', async (t) => {
  const before = await stored();
  const refused = '400 BadRequest: field label not supported: metadata.namespace';

  for (const fields of ['metadata.namespace=x', 'metadata.namespace=', 'metadata.namespace!=x', 'metadata.name=a,metadata.namespace=x'])
    for (const [method, query] of [
      ['GET', ''],
      ['GET', '&watch=true&timeoutSeconds=1'],
      ['DELETE', ''],
    ] as const) {
      const selected = `?fieldSelector=${encodeURIComponent(fields)}${query}`;
      t.is(await ask(method, `${rbac}/clusterroles${selected}`), refused, `${method} ${selected}`);
      t.is(await ask(method, `${aPath()}${selected}`), refused, `${method} ${selected}`);
    }

  t.is(await stored(), before);
  const inX = '?fieldSelector=metadata.namespace%3Dx';
  t.is((await (await server()).client().list(`${rbac}/roles${inX}`)).items.length, 1);
  t.is(await ask('DELETE', `${rbac}/namespaces/y/roles${inX}`), '200');
  t.is(await stored(), before);
});

test('numeric options of a list and of a watch are int64, and may not be repeated with different values', async (t) => {
  const list = (query: string): Promise<string> => ask('GET', `${aPath()}?${query}`);
  const parsing = (text: string, why = 'invalid syntax'): string =>
    `400 BadRequest: strconv.ParseInt: parsing ${JSON.stringify(text)}: ${why}`;
  const digits = '99999999999999999999';

  for (const watch of ['', '&watch=true']) {
    for (const name of ['limit', 'timeoutSeconds']) {
      for (const text of ['', 'abc', '1.5', '1e3', '0x10', '1_000', '-'])
        t.is(await list(`${name}=${text}${watch}`), parsing(text), `${name}=${text}${watch}`);
      t.is(await list(`${name}=+5${watch}`), parsing(' 5'));
      for (const text of [digits, `-${digits}`, '9223372036854775808', '9'.repeat(5_000)])
        t.is(await list(`${name}=${text}${watch}`), parsing(text, 'value out of range'));
      t.is(await list(`${name}${watch}`), parsing(''));
      t.is(await list(`${name}=1&${name}=2${watch}`), `400 BadRequest: the option "${name}" is given several times, with different values`);
    }
    for (const [name, one, other] of [
      ['labelSelector', 'a', 'b'],
      ['fieldSelector', 'metadata.name%3Da', ''],
      ['resourceVersion', '0', '1'],
      ['resourceVersion', '', '1'],
      ['allowWatchBookmarks', 'true', 'false'],
      ['continue', 'a', 'b'],
    ] as const)
      t.is(
        await list(`${name}=${one}&${name}=${other}${watch}`),
        `400 BadRequest: the option "${name}" is given several times, with different values`,
      );
  }
  t.is(
    await list('watch=false&watch=true&timeoutSeconds=1'),
    '400 BadRequest: the option "watch" is given several times, with different values',
  );
  for (const query of [
    'limit=%2B5',
    'limit=-9223372036854775808',
    'limit=9223372036854775807',
    'timeoutSeconds=-1',
    'limit=007',
    'limit=1&limit=1',
  ])
    t.is(await list(query), '200', query);
});

test('a read ignores a query parameter that is no option, as upstream does', async (t) => {
  for (const query of [
    'x=1',
    'x=1&x=2',
    'labelselector=a',
    'shardSelector=x',
    'exact=true',
    'continue=',
    'resourceVersion=',
    'resourceVersionMatch=',
  ])
    t.is(await ask('GET', `${aPath()}?${query}`), '200', query);
  t.is(await ask('GET', `${aPath({ name: 'one' })}?watch=true&limit=x`), '200');
  t.is(await ask('GET', `${aPath()}?watch=true&timeoutSeconds=1&timeout=soon`), '200');
  t.is(await ask('GET', `${aPath()}?timeout=soon`), '400 BadRequest: invalid timeout specified in the request URL: "soon"');
});
