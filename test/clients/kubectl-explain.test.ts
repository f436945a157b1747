/**
 * What `kubectl explain` shows of types whose schemas a shard has published. Nothing else in
 * kubectl may depend on these schemas.
 */
import { recordedObjects } from '../demo/recorded-shards.js';
import { anApiExport, anApiResourceSchema } from '../support/objects.js';
import { Kubectl } from './kubectl.js';
import { kubectlLaws, type Installed } from './kubectl-law.js';

const law = kubectlLaws();
const root = '/services/cache/shards/amber/clusters/root';

law('once a shard has pushed kcp’s schemas, explain shows the fields of kcp’s own types', async (t, { kubectl, strata }) => {
  t.regex((await kubectl.ok('explain', ['workspacetype.spec'])).stdout, /As the shard has it/);
  const atRoot = await Kubectl.create(strata, { at: root });
  const recorded = (await recordedObjects('kcp-2-shards.jsonl')).filter(({ collection }) =>
    /clusters\/root\/.*\/(?:apiexports|apiresourceschemas)$/.test(collection),
  );
  await atRoot.ok('create', ['-f', await atRoot.file('recorded', ...recorded.map(({ object }) => object))]);

  const spec = await kubectl.ok('explain', ['workspacetype.spec']);
  t.regex(spec.stdout, /^GROUP: +tenancy\.kcp\.io$/m);
  t.regex(spec.stdout, /^ +defaultChildWorkspaceType\t<Object>$/m);
  t.regex(spec.stdout, /^ +limitAllowedParents\t<Object>$/m);
  t.regex((await kubectl.ok('explain', ['workspacetype.spec.defaultChildWorkspaceType'])).stdout, /^ +name\t<string> -required-$/m);
  t.regex(
    (await kubectl.ok('explain', ['workspacetype', '--recursive'])).stdout,
    /^ +defaultChildWorkspaceType\t<Object>\n +name\t<string>/m,
  );
  t.regex((await kubectl.ok('explain', ['workspacetype.metadata.resourceVersion'])).stdout, /not that of the shard/);
  t.regex((await kubectl.run(['explain', 'workspacetype.spec.nonsense'])).stderr, /field "nonsense" does not exist/);
  for (const type of ['shard', 'clustercachedresource', 'logicalclustermigration'])
    t.notRegex((await kubectl.ok('explain', [`${type}.spec`])).stdout, /As the shard has it/, type);
});

law('kubectl creates, applies, edits and patches objects whatever the schema requires of their fields', async (t, installed) => {
  await publish(installed, {
    properties: {
      spec: {
        type: 'object',
        required: ['must'],
        properties: {
          must: { type: 'string', enum: ['a', 'b'] },
          number: { type: 'integer' },
          names: { type: 'array', items: { type: 'string' } },
        },
      },
    },
  });
  const { kubectl } = installed;
  t.regex((await kubectl.ok('explain', ['workspacetype.spec'])).stdout, /^ +must\t<string> -required-$/m);
  const workspaceType = (spec: object) => ({
    apiVersion: 'tenancy.kcp.io/v1alpha1',
    kind: 'WorkspaceType',
    metadata: { name: 'odd' },
    spec,
  });
  const spec = async (): Promise<string> => (await kubectl.ok('get', ['workspacetypes', 'odd', '-o', 'jsonpath={.spec}'])).stdout;

  const created = await kubectl.ok('create', ['-f', await kubectl.file('odd', workspaceType({ number: 'seven', unknown: 1 }))]);
  t.is(created.stderr, '');
  t.is(await spec(), '{"number":"seven","unknown":1}');
  await kubectl.ok('delete', ['workspacetypes', 'odd']);

  const apply = async (content: object): Promise<string> =>
    (await kubectl.ok('apply', ['-f', await kubectl.file('odd', workspaceType(content))])).stdout;
  t.regex(await apply({ names: ['a', 'b'], unknown: 1 }), /created/);
  t.regex(await apply({ names: ['a', 'b'], unknown: 1 }), /unchanged/);
  t.regex(await apply({ names: ['c'] }), /configured/);
  t.is(await spec(), '{"names":["c"]}');

  await kubectl.ok('edit', ['workspacetypes', 'odd'], { KUBE_EDITOR: 'sed -i s/names:/unknown:/' });
  t.is(await spec(), '{"unknown":["c"]}');
  await kubectl.ok('patch', ['workspacetypes', 'odd', '--type=merge', '-p', '{"spec":{"must":7}}']);
  t.is(await spec(), '{"must":7,"unknown":["c"]}');
});

law('kubectl explains and applies a type even if its schema is unusable', async (t, installed) => {
  const { kubectl } = installed;
  for (const schema of [
    { description: 7, properties: { spec: { type: ['object'], required: 'must', properties: ['a'], items: [7], $ref: '#/nowhere' } } },
    { properties: { spec: { $ref: '#/components/schemas/io.kcp.tenancy.v1alpha1.WorkspaceType' }, '': {}, 'a.b/~1': {} } },
    bare,
    'a text',
    { description: 'half of a pair: \ud800', properties: { spec: {} } },
    nested(1_000),
  ]) {
    await publish(installed, schema);
    t.regex((await kubectl.ok('explain', ['workspacetype'])).stdout, /^ +spec\t</m);
    await kubectl.ok('explain', ['workspacetype.spec']);
    await kubectl.ok('explain', ['workspacetype', '--recursive']);
    const file = await kubectl.file('any', { apiVersion: 'tenancy.kcp.io/v1alpha1', kind: 'WorkspaceType', metadata: { name: 'any' } });
    await kubectl.ok('apply', ['-f', file]);
  }
  t.regex((await kubectl.ok('explain', ['workspacetype', '--recursive'])).stdout, /^ +a\t</m);
});

/** Each keyword of a schema with the least that it may have. */
const bare = {
  properties: {
    spec: {
      properties: {
        list: { type: 'array' },
        lists: { type: 'array', items: { type: 'array' } },
        any: { type: 'array', items: {} },
        open: { type: 'object', additionalProperties: true },
        closed: { type: 'object', additionalProperties: false },
        map: { type: 'object', additionalProperties: {} },
        nothing: { type: 'object', properties: {} },
        properties: { properties: {} },
        untyped: { items: { type: 'string' } },
        strange: { type: 'strange', format: 'strange', description: '' },
        none: { enum: [] },
        chosen: { enum: ['', 1, 1.5, true] },
        described: { description: 'only' },
        needing: { required: ['missing'] },
        either: { 'x-kubernetes-int-or-string': true },
        not: { 'x-kubernetes-preserve-unknown-fields': false },
      },
    },
  },
};

/** Replaces what was published before. Does not use kubectl, which would correct some schemas. */
async function publish({ strata }: Installed, schema: unknown): Promise<void> {
  const client = strata.client({ prefix: root });
  const name = 'own.workspacetypes.tenancy.kcp.io';
  const resources = [{ group: 'tenancy.kcp.io', name: 'workspacetypes', schema: name, storage: { crd: {} } }];
  const exports = '/apis/apis.kcp.io/v1alpha2/apiexports';
  const schemas = '/apis/apis.kcp.io/v1alpha1/apiresourceschemas';
  await client.raw('DELETE', `${exports}/tenancy.kcp.io`);
  await client.raw('DELETE', `${schemas}/${name}`);
  await client.create(exports, anApiExport({ name: 'tenancy.kcp.io' }, { spec: { resources } }));
  await client.create(schemas, anApiResourceSchema(name, schema));
}

function nested(levels: number): object {
  let schema: object = { type: 'object', properties: {} };
  for (let level = 0; level < levels; level++) schema = { type: 'object', properties: { a: schema } };
  return { properties: { spec: schema } };
}
