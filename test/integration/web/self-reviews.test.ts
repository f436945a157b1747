/**
 * What a caller can learn about itself: SelfSubjectAccessReview, SelfSubjectRulesReview and
 * SelfSubjectReview.
 */
import { test } from '../../support/test.js';
import type { KubeClient, KubeStatus } from '../../support/kube-client.js';
import { aPath, anApiExport } from '../../support/objects.js';
import { shared } from '../../support/shared.js';
import { TestServer } from '../../support/test-server.js';

type Known = Readonly<{ server: TestServer; master: KubeClient; amber: KubeClient; cache: KubeClient; dev: KubeClient }>;

const known = shared(
  async (): Promise<Known> => {
    const server = await TestServer.start();
    const issue = async (user: string, ...uris: readonly string[]): Promise<KubeClient> =>
      server.client({ as: server.authority.issue({ user, groups: uris.length === 0 ? ['developers'] : ['strata'], uris: [...uris] }) });
    return {
      server,
      master: server.client(),
      amber: await issue('amber', 'strata://shard/amber'),
      cache: await issue('region-1', 'strata://cache/region-1'),
      dev: await issue('dev'),
    };
  },
  ({ server }) => server.close(),
);

type Where = Readonly<{ shard?: string; cluster?: string }>;

const authorization = { group: 'authorization.k8s.io', version: 'v1' };
const accessReviews = (where: Where = {}): string => aPath({ ...authorization, ...where, resource: 'selfsubjectaccessreviews' });
const rulesReviews = (where: Where = {}): string => aPath({ ...authorization, ...where, resource: 'selfsubjectrulesreviews' });
const reviews = (where: Where = {}): string =>
  aPath({ ...where, group: 'authentication.k8s.io', version: 'v1', resource: 'selfsubjectreviews' });

function accessReview(spec: unknown): unknown {
  return { apiVersion: 'authorization.k8s.io/v1', kind: 'SelfSubjectAccessReview', spec };
}

const exportsOf = (verb: string): unknown => accessReview({ resourceAttributes: { verb, group: 'apis.kcp.io', resource: 'apiexports' } });

/** `yes`, or the reason for no. */
async function mayI(client: KubeClient, review: unknown, where: Where = {}): Promise<string> {
  const { status, text } = await client.raw('POST', accessReviews(where), { body: review });
  if (status !== 201) return `${status} ${(JSON.parse(text) as KubeStatus).message}`;
  const { allowed, reason } = (JSON.parse(text) as { status: { allowed: boolean; reason?: string } }).status;
  return allowed ? 'yes' : `no - ${reason}`;
}

test('a review allows exactly the requests that the server does not answer with 403', async (t) => {
  const { master, amber, cache } = await known();
  await master.create(aPath(), anApiExport());
  const requests = {
    get: ['GET', { name: 'one' }],
    list: ['GET', {}],
    create: ['POST', {}],
    update: ['PUT', { name: 'one' }],
    patch: ['PATCH', { name: 'one' }],
    delete: ['DELETE', { name: 'none' }],
    deletecollection: ['DELETE', { namespace: 'none' }],
  } as const;

  for (const client of [master, amber, cache])
    for (const shard of ['amber', 'birch'])
      for (const [verb, [method, place]] of Object.entries(requests)) {
        const { status } = await client.raw(method, aPath({ shard, ...place }), method === 'GET' ? {} : { body: {} });
        const answered = await mayI(client, exportsOf(verb), { shard });
        t.is(answered === 'yes', status !== 403, `${verb} on ${shard}: ${status}, ${answered}`);
      }
});

test('a denied review gives the reason with which the request would be refused', async (t) => {
  const { amber, cache } = await known();

  t.is(await mayI(amber, exportsOf('create')), 'yes');
  t.is(
    await mayI(cache, exportsOf('create')),
    'no - apiexports.apis.kcp.io is forbidden: User "region-1" cannot create resource "apiexports" in API group "apis.kcp.io" at the cluster scope',
  );
});

test('a review of a write below a wildcard is denied, because no write can go there', async (t) => {
  const { master, amber } = await known();

  t.is(await mayI(master, exportsOf('list'), { shard: '*', cluster: '*' }), 'yes');
  t.is(await mayI(master, exportsOf('create'), { shard: '*' }), 'no - a write needs one shard, not all of them');
  t.is(await mayI(master, exportsOf('create'), { cluster: '*' }), 'no - a write needs one cluster, not all of them');
  t.regex(await mayI(amber, exportsOf('create'), { shard: '*' }), /^no - apiexports.apis.kcp.io is forbidden/);
});

test('only masters may use a verb that no request has, "*" included; a path is read like any other', async (t) => {
  const { master, amber } = await known();
  const anything = accessReview({ resourceAttributes: { verb: '*', group: '*', resource: '*' } });
  const path = (verb: string): unknown => accessReview({ nonResourceAttributes: { path: '/metrics', verb } });

  t.is(await mayI(master, anything), 'yes');
  for (const verb of ['*', 'GET', 'escalate']) t.regex(await mayI(amber, exportsOf(verb)), /^no - forbidden/, verb);
  t.is(await mayI(amber, path('get')), 'yes');
  t.is(await mayI(amber, path('post')), 'no - forbidden: User "amber" cannot post path "/metrics"');
});

test('the answer of a review contains its question, and nothing is stored', async (t) => {
  const { amber } = await known();
  const spec = { resourceAttributes: { namespace: 'default', verb: 'list', group: 'apis.kcp.io', resource: 'apiexports', name: 'one' } };

  const { text } = await amber.raw('POST', accessReviews(), { body: accessReview(spec) });

  t.deepEqual(JSON.parse(text), {
    kind: 'SelfSubjectAccessReview',
    apiVersion: 'authorization.k8s.io/v1',
    metadata: {},
    spec,
    status: { allowed: true },
  });
  t.is((await amber.raw('GET', accessReviews())).status, 405);
  t.is((await amber.raw('GET', `${accessReviews()}/one`)).status, 405);
});

test('a SelfSubjectReview shows user, groups and the URI that the certificate speaks for', async (t) => {
  const { master, amber } = await known();
  const userOf = async (client: KubeClient): Promise<unknown> => {
    const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' };
    const { text } = await client.raw('POST', reviews({ shard: '*', cluster: '*' }), { body });
    return (JSON.parse(text) as { status: { userInfo: unknown } }).status.userInfo;
  };

  t.deepEqual(await userOf(master), { username: 'cache-client', groups: ['system:masters'] });
  t.deepEqual(await userOf(amber), { username: 'amber', groups: ['strata'], extra: { 'certificate-uri': ['strata://shard/amber'] } });
});

test('a SelfSubjectRulesReview lists the verbs that requests are allowed with', async (t) => {
  const { master, amber } = await known();
  const verbsOf = async (client: KubeClient, where: Where): Promise<string> => {
    const body = { apiVersion: 'authorization.k8s.io/v1', kind: 'SelfSubjectRulesReview', spec: { namespace: 'default' } };
    const { text } = await client.raw('POST', rulesReviews(where), { body });
    const { resourceRules, nonResourceRules } = (
      JSON.parse(text) as { status: Record<string, { verbs: string[]; resources?: string[] }[]> }
    ).status;
    const all = resourceRules?.find(({ resources }) => resources?.[0] === '*')?.verbs.join(' ');
    return `${all}; ${nonResourceRules?.flatMap(({ verbs }) => verbs).join(' ')}`;
  };
  const every = 'create delete deletecollection get list patch update watch';

  t.is(await verbsOf(master, {}), `* ${every}; get post put patch delete`);
  t.is(await verbsOf(amber, {}), `${every}; get`);
  t.is(await verbsOf(amber, { shard: 'birch' }), 'get list watch; get');
  t.is(await verbsOf(master, { shard: '*' }), 'get list watch; get post put patch delete');
});

test('a review is also read and answered in protobuf, as kubectl sends it', async (t) => {
  const { amber } = await known();
  const headers = { 'content-type': 'application/vnd.kubernetes.protobuf', accept: 'application/vnd.kubernetes.protobuf,application/json' };
  const sent = Buffer.from(
    'k8s\0\n2\n\x17authorization.k8s.io/v1\x12\x17SelfSubjectAccessReview\x12E\n\x10\n\0\x12\0\x1a\0"\0*\x002\x008\0B\0\x12\'\n%\n\x07default\x12\x06create\x1a\0"\0*\napiexports2\0:\0\x1a\b\b\0\x12\0\x1a\0 \0\x1a\0"\0',
    'latin1',
  );

  const { status, text } = await amber.raw('POST', accessReviews(), { body: sent, headers });

  t.is(status, 201, text);
  t.like(JSON.parse(text), {
    spec: { resourceAttributes: { namespace: 'default', verb: 'create', resource: 'apiexports' } },
    status: { allowed: true },
  });
  for (let length = 0; length < sent.length; length += 1) {
    const cut = await amber.raw('POST', accessReviews(), { body: sent.subarray(0, length), headers });
    t.true([201, 400, 422].includes(cut.status), `${length}: ${cut.status} ${cut.text}`);
  }
});

/** A field of a message: bytes, a text, a message of fields, or a number. */
type Field = readonly [number: number, value: string | Buffer | readonly Field[] | number];

function message(fields: readonly Field[]): Buffer {
  const pieces = fields.map(([number, value]) => {
    if (typeof value === 'number') return Buffer.from([number << 3, value]);
    const bytes = typeof value === 'string' ? Buffer.from(value) : Buffer.isBuffer(value) ? value : message(value as readonly Field[]);
    return Buffer.concat([Buffer.from([(number << 3) | 2, bytes.length]), bytes]);
  });
  return Buffer.concat(pieces);
}

const accessType: readonly Field[] = [
  [1, 'authorization.k8s.io/v1'],
  [2, 'SelfSubjectAccessReview'],
];
const rulesType: readonly Field[] = [
  [1, 'authorization.k8s.io/v1'],
  [2, 'SelfSubjectRulesReview'],
];

/** Sends a review in protobuf; returns the spec in the answer, or the status of a refusal. */
async function inProtobuf(fields: readonly Field[], path = accessReviews()): Promise<unknown> {
  const headers = { 'content-type': 'application/vnd.kubernetes.protobuf', accept: 'application/json' };
  const { status, text } = await (
    await known()
  ).amber.raw('POST', path, { body: Buffer.concat([Buffer.from('k8s\0'), message(fields)]), headers });
  return status === 201 ? (JSON.parse(text) as { spec: unknown }).spec : status;
}

const ofSpec = (...spec: readonly Field[]): readonly Field[] => [
  [1, accessType],
  [2, [[2, spec]]],
];
const ofAttributes = (...attributes: readonly Field[]): readonly Field[] => ofSpec([1, attributes]);
const readMetrics: Field = [
  2,
  [
    [1, '/metrics'],
    [2, 'get'],
  ],
];

test('in protobuf, a message that is sent in parts is merged, as in Go; of a repeated text the last counts', async (t) => {
  const merged = { resourceAttributes: { verb: 'delete', resource: 'secrets', name: 'x' } };
  const [verb, rest] = [
    [2, 'delete'],
    [7, 'x'],
  ] as const;
  const resource = [5, 'secrets'] as const;

  t.deepEqual(await inProtobuf(ofSpec([1, [verb, resource]], [1, [rest]])), merged);
  t.deepEqual(
    await inProtobuf([
      [1, accessType],
      [
        2,
        [
          [2, [[1, [verb]]]],
          [2, [[1, [resource, rest]]]],
        ],
      ],
    ]),
    merged,
  );
  t.deepEqual(
    await inProtobuf([[1, [[1, 'authorization.k8s.io/v1']]], [1, [[2, 'SelfSubjectAccessReview']]], ...ofAttributes(verb, resource, rest)]),
    merged,
  );
  t.deepEqual(
    await inProtobuf([
      [1, accessType],
      [2, [[2, [readMetrics]]]],
      [2, [[2, [[1, [verb, resource, rest]]]]]],
    ]),
    merged,
    'an embedded object is not merged like a message',
  );
  t.deepEqual(await inProtobuf(ofAttributes([2, 'get'], verb, resource, rest)), merged);
  t.deepEqual(await inProtobuf(ofAttributes(verb, resource, rest, [8, [[1, 'a=b']]], [15, 7], [14, 'new'])), merged);
  t.is(await inProtobuf(ofSpec([1, []], readMetrics)), 422, 'an empty member is still present');
});

test('in protobuf, a field of a wrong type is not taken for an absent one', async (t) => {
  const attributes: readonly Field[] = [
    [2, 'get'],
    [5, 'secrets'],
  ];
  for (const number of [1, 2, 3, 4, 5, 6, 7, 8, 9])
    t.is(await inProtobuf(ofAttributes(...attributes, [number, 1])), 400, `attribute ${number}`);
  t.is(await inProtobuf(ofSpec([1, 1], readMetrics)), 400);
  t.is(await inProtobuf(ofSpec(readMetrics, [2, 1])), 400);
  t.is(
    await inProtobuf(
      ofSpec([
        2,
        [
          [1, '/metrics'],
          [2, 1],
        ],
      ]),
    ),
    400,
  );
  for (const number of [1, 2, 3])
    t.is(
      await inProtobuf([
        [1, accessType],
        [
          2,
          [
            [2, [readMetrics]],
            [number, 1],
          ],
        ],
      ]),
      400,
      `member ${number}`,
    );
  for (const number of [1, 2, 3, 4]) t.is(await inProtobuf([...ofSpec(readMetrics), [number, 1]]), 400, `envelope ${number}`);
  t.is(
    await inProtobuf([
      [1, [...accessType, [2, 1]]],
      [2, [[2, [readMetrics]]]],
    ]),
    400,
  );
  t.is(
    await inProtobuf(
      [
        [1, rulesType],
        [2, [[2, [[1, 1]]]]],
      ],
      rulesReviews(),
    ),
    400,
  );
  t.is(await inProtobuf(ofAttributes(...attributes, [7, Buffer.from([0xff])])), 400, 'no UTF-8');
  t.is(await inProtobuf(ofAttributes(...attributes, [0, 'x'])), 400, 'no field has the number 0');
  // In Go field numbers have 32 bits, so this number is 7 again.
  const seven = Buffer.from([0xba, 0x80, 0x80, 0x80, 0x80, 0x01, 1, 0x78]);
  t.is(await inProtobuf(ofSpec([1, Buffer.concat([message(attributes), seven])])), 400);
  const [half, other] = [message(attributes).subarray(0, -4), message(attributes).subarray(-4)];
  t.is(await inProtobuf(ofSpec([1, half], [1, other])), 400, 'each part is whole');
});

test('a review with duplicate members is refused, whatever its fieldValidation', async (t) => {
  const { amber } = await known();
  const attributes = (verb: string): string => `{"resourceAttributes":{"verb":"${verb}","resource":"secrets"}}`;
  const opening = '{"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectAccessReview"';
  const bodies = [
    `${opening},"spec":${attributes('delete')},"spec":${attributes('get')}}`,
    `${opening},"spec":{"resourceAttributes":{"verb":"get"},"resourceAttributes":{"resource":"secrets"}}}`,
    `${opening},"spec":{"resourceAttributes":{"verb":"delete","verb":"get"}}}`,
    `${opening},"kind":"SelfSubjectAccessReview","spec":${attributes('get')}}`,
  ];

  for (const query of ['', '?fieldValidation=Strict', '?fieldValidation=Ignore'])
    for (const type of ['application/json', 'application/yaml'])
      for (const body of bodies) {
        const { status } = await amber.raw('POST', `${accessReviews()}${query}`, { body, headers: { 'content-type': type } });
        t.is(status, 400, `${type} ${query} ${body}`);
      }
});

test('an invalid review is refused with what is wrong', async (t) => {
  const { amber } = await known();
  const long = exportsOf('x'.repeat(20_000));

  t.is(
    await mayI(amber, accessReview({})),
    '422 SelfSubjectAccessReview.authorization.k8s.io "" is invalid: spec.resourceAttributes: Required value: exactly one of nonResourceAttributes or resourceAttributes must be specified',
  );
  t.regex(
    await mayI(amber, { ...(exportsOf('get') as object), kind: 'SelfSubjectReview' }),
    /^400 .*must be of type SelfSubjectAccessReview/,
  );
  t.regex(await mayI(amber, accessReview({ resourceAttributes: { verb: 1 } })), /^400 spec.resourceAttributes.verb must be a string/);
  t.regex(await mayI(amber, []), /^400/);
  t.regex(await mayI(amber, long), /^413/);
  t.is((await amber.raw('POST', accessReviews(), { body: '<x/>', headers: { 'content-type': 'text/xml' } })).status, 415);
});

test('a member of a wrong type is not taken for an absent one', async (t) => {
  const { amber } = await known();
  const read = { path: '/metrics', verb: 'get' };

  for (const spec of ['x', [], 7, false]) {
    t.is(await mayI(amber, accessReview(spec)), '400 spec must be an object', JSON.stringify(spec));
    const rules = { apiVersion: 'authorization.k8s.io/v1', kind: 'SelfSubjectRulesReview', spec };
    t.is((await amber.raw('POST', rulesReviews(), { body: rules })).status, 400, JSON.stringify(spec));
  }
  for (const none of ['x', [], 7, false]) {
    const asked = accessReview({ resourceAttributes: none, nonResourceAttributes: read });
    t.is(await mayI(amber, asked), '400 spec.resourceAttributes must be an object', JSON.stringify(none));
    const reversed = accessReview({ resourceAttributes: { verb: 'get' }, nonResourceAttributes: none });
    t.is(await mayI(amber, reversed), '400 spec.nonResourceAttributes must be an object', JSON.stringify(none));
  }
  t.is(await mayI(amber, accessReview({ resourceAttributes: null, nonResourceAttributes: read })), 'yes');
  for (const [namespace, expected] of [
    [7, 400],
    [null, 201],
    ['default', 201],
  ] as const) {
    const body = { apiVersion: 'authorization.k8s.io/v1', kind: 'SelfSubjectRulesReview', spec: { namespace } };
    t.is((await amber.raw('POST', rulesReviews(), { body })).status, expected, JSON.stringify(namespace));
  }
});

test('a caller that may not read learns only its own name', async (t) => {
  const { dev } = await known();

  t.is(
    await mayI(dev, exportsOf('get')),
    '403 selfsubjectaccessreviews.authorization.k8s.io is forbidden: User "dev" cannot create resource "selfsubjectaccessreviews" in API group "authorization.k8s.io" at the cluster scope',
  );
});

test('discovery lists the reviews, which can only be created', async (t) => {
  const { amber } = await known();
  const listed = async (group: string): Promise<unknown> =>
    JSON.parse((await amber.raw('GET', `/services/cache/shards/amber/clusters/acme/apis/${group}/v1`)).text);

  t.like(await listed('authorization.k8s.io'), {
    resources: [
      { name: 'selfsubjectaccessreviews', kind: 'SelfSubjectAccessReview', namespaced: false, verbs: ['create'] },
      { name: 'selfsubjectrulesreviews', kind: 'SelfSubjectRulesReview', verbs: ['create'] },
    ],
  });
  t.like(await listed('authentication.k8s.io'), {
    resources: [{ name: 'selfsubjectreviews', kind: 'SelfSubjectReview', verbs: ['create'] }],
  });
});
