/**
 * The installed kubectl at one shard and cluster, which is how a user looks into a cache. All
 * commands run against one server, each on an object or two of its own.
 */
import { parse } from 'yaml';
import { kubectlLaws } from './kubectl-law.js';

const law = kubectlLaws();

law('get shows a table, and the whole object as yaml', async (t, { kubectl }) => {
  await kubectl.ok('create', ['-f', await kubectl.file('table', apiExport('table-one', { tier: 'gold' }))]);

  const table = await kubectl.ok('get', ['apiexports', 'table-one']);
  const yaml = await kubectl.ok('get', ['apiexports', 'table-one', '-o', 'yaml']);

  t.regex(table.stdout, /^NAME\s.*AGE/);
  t.regex(table.stdout, /table-one\s/);
  t.regex(yaml.stdout, /kcp\.io\/shard: amber/);
  t.regex(yaml.stdout, /kcp\.io\/cluster: acme/);
  t.regex(yaml.stdout, /tier: gold/);
});

law('get -w shows the existing objects and what changes', async (t, { kubectl }) => {
  await kubectl.ok('create', ['-f', await kubectl.file('watched', apiExport('watched-one'))]);

  const seen = await kubectl.watch(
    ['get', 'apiexports', '-w', '-o', 'name'],
    3,
    async () => {
      await kubectl.ok('label', ['apiexports', 'watched-one', 'seen=yes']);
      await kubectl.ok('create', ['-f', await kubectl.file('watched-two', apiExport('watched-two'))]);
    },
    (line) => line.includes('watched-'),
  );

  t.deepEqual(
    seen.map((line) => line.split('/')[1]),
    ['watched-one', 'watched-one', 'watched-two'],
  );
});

law('get NAME -w shows that object alone', async (t, { kubectl }) => {
  await kubectl.ok('create', ['-f', await kubectl.file('single', apiExport('single-one'))]);

  const seen = await kubectl.watch(['get', 'apiexports', 'single-one', '-w', '-o', 'name'], 2, async () => {
    await kubectl.ok('create', ['-f', await kubectl.file('single-two', apiExport('single-two'))]);
    await kubectl.ok('label', ['apiexports', 'single-one', 'seen=yes']);
  });

  t.true(
    seen.every((line) => line.endsWith('/single-one')),
    seen.join(),
  );
});

law('-l and --field-selector narrow a list', async (t, { kubectl }) => {
  await kubectl.ok('create', [
    '-f',
    await kubectl.file('narrow', apiExport('narrow-gold', { narrow: 'gold' }), apiExport('narrow-tin', { narrow: 'tin' })),
  ]);

  const byLabel = await kubectl.ok('get', ['apiexports', '-l', 'narrow=gold', '-o', 'name']);
  const byField = await kubectl.ok('get', ['apiexports', '--field-selector', 'metadata.name=narrow-tin', '-o', 'name']);

  t.regex(byLabel.stdout.trim(), /^\S+\/narrow-gold$/);
  t.regex(byField.stdout.trim(), /^\S+\/narrow-tin$/);
});

law('a list in chunks has every object once', async (t, { kubectl }) => {
  const names = Array.from({ length: 9 }, (_, index) => `chunk-${index}`);
  await kubectl.ok('create', ['-f', await kubectl.file('chunks', ...names.map((name) => apiExport(name, { chunked: 'yes' })))]);

  const listed = await kubectl.ok('get', ['apiexports', '-l', 'chunked=yes', '--chunk-size=2', '-o', 'name']);

  t.deepEqual(
    listed.stdout
      .trim()
      .split('\n')
      .map((line) => line.split('/')[1])
      .toSorted(),
    names,
  );
});

law('apply creates an object, leaves an equal one alone, and changes a different one: a kcp type', async (t, { kubectl }) => {
  const file = await kubectl.file('applied', apiExport('applied-one'));

  const created = await kubectl.ok('apply', ['-f', file]);
  const same = await kubectl.ok('apply', ['-f', file]);
  await kubectl.file('applied', { ...apiExport('applied-one'), spec: { n: 2 } });
  const changed = await kubectl.ok('apply', ['-f', file]);

  t.regex(created.stdout, /created/);
  t.regex(same.stdout, /unchanged/);
  t.regex(changed.stdout, /configured/);
  t.is((await kubectl.ok('get', ['apiexports', 'applied-one', '-o', 'jsonpath={.spec.n}'])).stdout, '2');
});

law(
  'apply creates an object, leaves an equal one alone, and changes a different one: a ClusterRole, by strategic merge patch',
  async (t, { kubectl }) => {
    const file = await kubectl.file('role', clusterRole('applied:role', ['get']));

    const created = await kubectl.ok('apply', ['-f', file]);
    const same = await kubectl.ok('apply', ['-f', file]);
    await kubectl.file('role', clusterRole('applied:role', ['get', 'list']));
    const changed = await kubectl.ok('apply', ['-f', file]);

    t.regex(created.stdout, /created/);
    t.regex(same.stdout, /unchanged/);
    t.regex(changed.stdout, /configured/);
    t.is((await kubectl.ok('get', ['clusterroles', 'applied:role', '-o', 'jsonpath={.rules[0].verbs}'])).stdout, '["get","list"]');
  },
);

law('kubectl can delete, apply and create a List of several types that get printed as yaml', async (t, { kubectl }) => {
  const labels = { listed: 'yes' };
  const role = { ...clusterRole('listed:role', ['get']), metadata: { name: 'listed:role', labels } };
  await kubectl.ok('create', ['-f', await kubectl.file('listed', apiExport('listed-one', labels), role)]);
  const printed = parse((await kubectl.ok('get', ['apiexports,clusterroles', '-l', 'listed=yes', '-o', 'yaml'])).stdout);
  const list = await kubectl.file('list', printed);
  t.is(printed.kind, 'List');

  for (const verb of ['delete', 'apply', 'delete', 'create'])
    t.is((await kubectl.ok(verb, ['-f', list])).stdout.trim().split('\n').length, 2, verb);

  const misspelt = printed.items.map(({ metadata, ...rest }: { metadata: object }) => ({ ...rest, metadata: { ...metadata, lables: {} } }));
  t.regex((await kubectl.run(['apply', '-f', await kubectl.file('misspelt', { ...printed, items: misspelt })])).stderr, /lables/);
});

law('patch, as edit sends it, replace and delete change the object', async (t, { kubectl }) => {
  const file = await kubectl.file('life', apiExport('life-one', { step: 'one' }));
  await kubectl.ok('create', ['-f', file]);

  await kubectl.ok('patch', ['apiexports', 'life-one', '--type=merge', '-p', '{"metadata":{"labels":{"step":"two"}}}']);
  await kubectl.ok('patch', ['apiexports', 'life-one', '--type=json', '-p', '[{"op":"replace","path":"/spec/n","value":7}]']);
  t.is((await kubectl.ok('get', ['apiexports', 'life-one', '-o', 'jsonpath={.metadata.labels.step}{.spec.n}'])).stdout, 'two7');

  await kubectl.ok('replace', ['-f', await kubectl.file('life', await kubectl.object('apiexports', 'life-one', { spec: { n: 8 } }))]);
  t.is((await kubectl.ok('get', ['apiexports', 'life-one', '-o', 'jsonpath={.spec.n}'])).stdout, '8');

  const deleted = await kubectl.ok('delete', ['apiexports', 'life-one', '--wait=true', '--timeout=10s']);
  t.regex(deleted.stdout, /deleted/);
  t.regex((await kubectl.run(['get', 'apiexports', 'life-one'])).stderr, /NotFound/);
});

law('edit stores the label that its editor changes', async (t, { kubectl }) => {
  await kubectl.ok('create', ['-f', await kubectl.file('edited', apiExport('edited-one', { step: 'before' }))]);

  await kubectl.ok('edit', ['apiexports', 'edited-one'], { KUBE_EDITOR: 'sed -i s/before/after/' });

  t.is((await kubectl.ok('get', ['apiexports', 'edited-one', '-o', 'jsonpath={.metadata.labels.step}'])).stdout, 'after');
});

law('delete --all leaves nothing of a type', async (t, { kubectl }) => {
  await kubectl.ok('create', ['-f', await kubectl.file('all', shard('all-one'), shard('all-two'))]);

  await kubectl.ok('delete', ['shards', '--all', '--timeout=10s']);

  t.is((await kubectl.ok('get', ['shards', '-o', 'name'])).stdout, '');
});

law('kubectl finds a type by its singular, its short name and its category', async (t, { kubectl }) => {
  await kubectl.ok('create', ['-f', await kubectl.file('called', apiExport('called'))]);

  for (const called of ['apiexport', 'APIExport', 'apiexports.apis.kcp.io', 'apiexports.v1alpha1.apis.kcp.io'])
    t.regex((await kubectl.ok('get', [called, 'called', '-o', 'name'])).stdout, /^apiexport\.apis\.kcp\.io\/called\n$/, called);
  for (const called of ['crd', 'crds']) t.regex((await kubectl.ok('get', [called])).stderr, /No resources found/, called);
  t.regex((await kubectl.ok('get', ['kcp', '-o', 'name'])).stdout, /apiexport\.apis\.kcp\.io\/called\n/);
});

law('describe shows an object, annotate changes it, and diff shows what an apply would change', async (t, { kubectl }) => {
  await kubectl.ok('create', ['-f', await kubectl.file('described', apiExport('described-one', { tier: 'gold' }))]);
  await kubectl.ok('annotate', ['apiexports', 'described-one', 'example.io/note=seen']);

  const described = await kubectl.ok('describe', ['apiexports', 'described-one']);
  t.regex(described.stdout, /^Name: +described-one$/m);
  t.regex(described.stdout, /example\.io\/note: seen/);
  t.regex(described.stdout, /^Labels: +tier=gold$/m);
  t.regex(described.stdout, /^Spec:\n +N: +1$/m);

  const changed = await kubectl.run(['diff', '-f', await kubectl.file('differs', apiExport('described-one', { tier: 'tin' }))]);
  t.is(changed.code, 1, changed.stderr);
  t.regex(changed.stdout, /^-\s+tier: gold$[^]*^\+\s+tier: tin$/m);
  t.is((await kubectl.ok('get', ['apiexports', 'described-one', '-o', 'jsonpath={.metadata.labels.tier}'])).stdout, 'gold');
});

law('a ClusterRole accepts a patch of each type', async (t, { kubectl }) => {
  await kubectl.ok('create', ['-f', await kubectl.file('patched', clusterRole('patched', ['get']))]);
  const patch = (type: string, body: object) =>
    kubectl.ok('patch', ['clusterroles', 'patched', `--type=${type}`, '-p', JSON.stringify(body)]);

  await patch('strategic', { metadata: { labels: { by: 'strategic' } } });
  await patch('merge', { metadata: { annotations: { by: 'merge' } } });
  await patch('json', [{ op: 'add', path: '/rules/0/verbs/-', value: 'list' }]);

  const object = (await kubectl.object('clusterroles', 'patched', {})) as {
    metadata: Record<string, object>;
    rules: { verbs: string[] }[];
  };
  t.like(object.metadata, { labels: { by: 'strategic' }, annotations: { by: 'merge' } });
  t.deepEqual(object.rules[0]!.verbs, ['get', 'list']);
});

law('explain names the top-level fields of a kind, and says that the shard defines the rest', async (t, { kubectl }) => {
  const whole = await kubectl.ok('explain', ['apiexport']);
  t.regex(whole.stdout, /^GROUP: +apis\.kcp\.io$/m);
  for (const field of ['metadata', 'spec', 'status']) t.regex(whole.stdout, new RegExp(`^ +${field}\t<`, 'm'));
  t.regex((await kubectl.ok('explain', ['apiexport.spec'])).stdout, /As the shard has it/);
  t.regex((await kubectl.ok('explain', ['apiexport.metadata.resourceVersion'])).stdout, /not that of the shard/);

  const role = await kubectl.ok('explain', ['clusterrole']);
  t.regex(role.stdout, /^ +rules\t</m);
  t.notRegex(role.stdout, /^ +spec\t/m);
  t.notRegex((await kubectl.ok('explain', ['apiresourceschema'])).stdout, /^ +status\t/m);
  t.regex((await kubectl.run(['explain', 'apiexport.nonsense'])).stderr, /field "nonsense" does not exist/);
});

law('explain shows the fields of a review’s question and answer', async (t, { kubectl }) => {
  t.regex((await kubectl.ok('explain', ['selfsubjectaccessreview'])).stdout, /^ +spec\t<Object> -required-$/m);
  t.regex((await kubectl.ok('explain', ['selfsubjectaccessreview.spec.resourceAttributes.verb'])).stdout, /deletecollection/);
  t.regex((await kubectl.ok('explain', ['selfsubjectrulesreview.status.resourceRules'])).stdout, /^ +apiGroups\t<\[\]string>$/m);
  t.regex((await kubectl.ok('explain', ['selfsubjectreview.status.userInfo'])).stdout, /^ +username\t<string>$/m);
});

law('api-resources lists the types, and version shows the server’s version', async (t, { kubectl }) => {
  const resources = await kubectl.ok('api-resources', []);
  const version = await kubectl.ok('version', []);

  t.regex(resources.stdout, /apiexports\s.*apis\.kcp\.io\/v1alpha[12]\s+false\s+APIExport/);
  t.regex(resources.stdout, /rolebindings\s.*rbac\.authorization\.k8s\.io\/v1\s+true\s+RoleBinding/);
  t.regex(version.stdout, /Server Version: v\d/);
});

function apiExport(name: string, labels: Readonly<Record<string, string>> = {}): Readonly<Record<string, unknown>> {
  return { apiVersion: 'apis.kcp.io/v1alpha2', kind: 'APIExport', metadata: { name, labels }, spec: { n: 1 } };
}

function shard(name: string): Readonly<Record<string, unknown>> {
  return { apiVersion: 'core.kcp.io/v1alpha1', kind: 'Shard', metadata: { name }, spec: { baseURL: 'https://127.0.0.1:1' } };
}

function clusterRole(name: string, verbs: readonly string[]): Readonly<Record<string, unknown>> {
  return {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRole',
    metadata: { name },
    rules: [{ apiGroups: [''], resources: ['configmaps'], verbs }],
  };
}
