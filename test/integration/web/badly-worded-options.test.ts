/**
 * An option that is present but not understood must be refused, and nothing done. The tests would
 * find an option that the server treats as absent instead.
 */
import type { ExecutionContext } from 'ava';
import { test } from '../../support/test.js';
import type { KubeClient, KubeStatus, RequestOptions } from '../../support/kube-client.js';
import { aPath, anApiExport } from '../../support/objects.js';
import { shared } from '../../support/shared.js';
import { TestServer } from '../../support/test-server.js';

const server = shared(
  () => TestServer.start(),
  (made) => made.close(),
);

let clusters = 0;

type Place = Readonly<{ client: KubeClient; one: string; all: string; stored: () => Promise<string> }>;

/** Two objects in a logical cluster of the test's own. */
async function aPlace(): Promise<Place> {
  const client = (await server()).client();
  const cluster = `o${(clusters += 1)}`;
  const all = aPath({ cluster });
  for (const name of ['one', 'two']) await client.create(all, anApiExport({ name }));
  return { client, one: aPath({ cluster, name: 'one' }), all, stored: async () => JSON.stringify((await client.list(all)).items) };
}

async function refusedWith(client: KubeClient, method: string, path: string, options: RequestOptions = {}): Promise<string> {
  const { status, text } = await client.raw(method, path, options);
  return `${status} ${(JSON.parse(text) as KubeStatus).reason ?? 'done'}`;
}

const bodies: readonly (readonly [body: string, expected: string])[] = [
  ['{"dryRun":"All"}', '400 BadRequest'],
  ['{"dryRun":""}', '400 BadRequest'],
  ['{"dryRun":true}', '400 BadRequest'],
  ['{"dryRun":false}', '400 BadRequest'],
  ['{"dryRun":1}', '400 BadRequest'],
  ['{"dryRun":{"All":true}}', '400 BadRequest'],
  ['{"dryRun":[true]}', '400 BadRequest'],
  ['{"dryRun":[["All"]]}', '400 BadRequest'],
  ['{"dryRun":[""]}', '422 Invalid'],
  ['{"dryRun":[null]}', '422 Invalid'],
  ['{"dryRun":["all"]}', '422 Invalid'],
  ['{"dryRun":["All",""]}', '422 Invalid'],
  ['{"dryRun":["All"],"dryRun":[]}', '400 BadRequest'],
  ['{"dryrun":["All"]}', '400 BadRequest'],
  ['{"dry_run":["All"]}', '400 BadRequest'],
  ['{"__proto__":{"dryRun":["All"]}}', '400 BadRequest'],
  ['{"options":{"dryRun":["All"]}}', '400 BadRequest'],
  ['{"kind":"DeleteOptions","apiVersion":7}', '400 BadRequest'],
  ['{"kind":"DeleteOptions","apiVersion":"a/b/c"}', '400 BadRequest'],
  ['{"kind":7}', '400 BadRequest'],
  ['{"kind":"deleteoptions"}', '400 BadRequest'],
  ['{"kind":"APIExport","apiVersion":"apis.kcp.io/v1alpha2"}', '400 BadRequest'],
  ['{"preconditions":"x"}', '400 BadRequest'],
  ['{"preconditions":[]}', '400 BadRequest'],
  ['{"preconditions":[{"uid":"nope"}]}', '400 BadRequest'],
  ['{"preconditions":{"uid":7}}', '400 BadRequest'],
  ['{"preconditions":{"resourceVersion":1}}', '400 BadRequest'],
  ['{"preconditions":{"UID":"nope"}}', '400 BadRequest'],
  ['{"preconditions":{"uid":"nope","uid":null}}', '400 BadRequest'],
  ['{"preconditions":{"uid":"nope"}}', '409 Conflict'],
  ['{"preconditions":{"uid":""}}', '409 Conflict'],
  ['{"preconditions":{"resourceVersion":"1"}}', '409 Conflict'],
  ['{"preconditions":{"resourceVersion":""}}', '409 Conflict'],
  ['{"preconditions":{"resourceVersion":"1"},"dryRun":["All"]}', '409 Conflict'],
  ['{"uid":"nope"}', '400 BadRequest'],
  ['{"resourceVersion":"1"}', '400 BadRequest'],
  ['{"propagationPolicy":"Foo"}', '422 Invalid'],
  ['{"propagationPolicy":"foreground"}', '422 Invalid'],
  ['{"propagationPolicy":""}', '422 Invalid'],
  ['{"propagationPolicy":7}', '400 BadRequest'],
  ['{"orphanDependents":"true"}', '400 BadRequest'],
  ['{"orphanDependents":1}', '400 BadRequest'],
  ['{"orphanDependents":false,"propagationPolicy":"Orphan"}', '422 Invalid'],
  ['{"gracePeriodSeconds":"5"}', '400 BadRequest'],
  ['{"gracePeriodSeconds":1.5}', '400 BadRequest'],
  ['{"gracePeriodSeconds":1e2}', '400 BadRequest'],
  ['{"gracePeriodSeconds":9223372036854775808}', '400 BadRequest'],
  ['{"ignoreStoreReadErrorWithClusterBreakingPotential":true}', '422 Invalid'],
  ['{"ignoreStoreReadErrorWithClusterBreakingPotential":"true"}', '400 BadRequest'],
  ['[]', '400 BadRequest'],
  ['"All"', '400 BadRequest'],
  ['null', '400 BadRequest'],
  [' ', '400 BadRequest'],
  ['{}{}', '400 BadRequest'],
];

for (const [body, expected] of bodies)
  test(`a delete with ${body} is ${expected}, for one object and for a collection`, async (t) => {
    const { client, one, all, stored } = await aPlace();
    const before = await stored();

    t.is(await refusedWith(client, 'DELETE', one, { body }), expected);
    t.is(await refusedWith(client, 'DELETE', all, { body }), expected);

    t.is(await stored(), before);
  });

/**
 * Line ends that Go's YAML reader accepts and a reader of YAML 1.2 does not, and a complex key
 * without a colon.
 */
const otherLines = [
  ...['\r', '\u0085', '\u2028', '\u2029'].flatMap((end) => [
    `kind: DeleteOptions # no risk${end}dryRun: [All]${end}`,
    `{kind: DeleteOptions} # no risk${end}`,
    `kind: "Delete${end}Options"\n`,
  ]),
  'kind: DeleteOptions\n\ufeffdryRun: [All]\n',
  'kind: DeleteOptions #\n\rdryRun: [All]\n',
  '? dryRun\n- All\n',
  '? dryRun\n # all\n "\n',
];
const duplicates = ['dryRun: [All]\ndryRun: []\n', 'dryRun: [All]\n"dryRun": null\n', '{preconditions: {uid: nope, uid: null}}\n'];

test('malformed DeleteOptions in YAML are refused as well', async (t) => {
  const { client, one, all, stored } = await aPlace();
  const before = await stored();

  for (const body of ['dryRun: All\n', 'dryRun: [7]\n', 'preconditions: x\n', 'dryrun: [All]\n', ...duplicates, ...otherLines])
    for (const path of [one, all])
      t.is(await refusedWith(client, 'DELETE', path, { body, headers: { 'content-type': 'application/yaml' } }), '400 BadRequest', body);

  t.is(await stored(), before);
});

const everywhere: readonly (readonly [query: string, expected: string])[] = [
  ['dryRun=', '422 Invalid'],
  ['dryRun', '422 Invalid'],
  ['dryRun=all', '422 Invalid'],
  ['dryRun=true', '422 Invalid'],
  ['dryRun=All,All', '422 Invalid'],
  ['dryRun=All&dryRun=', '422 Invalid'],
  ['dryRun=None&dryRun=All', '422 Invalid'],
  ['dryRun=+All', '422 Invalid'],
  ['dryRun=All%00', '422 Invalid'],
  ['dryRun=All%zz', '400 BadRequest'],
  ['dryRun=%', '400 BadRequest'],
  ['dryRun=All%ff', '400 BadRequest'],
  ['dryRun=All;x=y', '400 BadRequest'],
  ['x=y;dryRun=All', '400 BadRequest'],
  ['dryrun=All', '400 BadRequest'],
  ['DryRun=All', '400 BadRequest'],
  ['dry-run=All', '400 BadRequest'],
  ['dryRun[]=All', '400 BadRequest'],
  ['dryRun%5B0%5D=All', '400 BadRequest'],
  ['dryRun%00=All', '400 BadRequest'],
  ['+dryRun=All', '400 BadRequest'],
  ['=All', '400 BadRequest'],
  ['timeout=soon', '400 BadRequest'],
  ['timeout=5', '400 BadRequest'],
  ...['9999999999h', '2562048h', '9223372036854775808ns', '2562047h47m16.854775808s', '1h2562047h', '-9223372036854775809ns']
    .concat(['.9223372036854775808e1h', '9223372036.854775808s', `${'9'.repeat(9_000)}h`, '153722867281m', '9223372036854775808.5ns'])
    .map((time): [string, string] => [`timeout=${time}`, '400 BadRequest']),
];

const ofDeletes: typeof everywhere = [
  ['gracePeriodSeconds=abc', '400 BadRequest'],
  ['gracePeriodSeconds=', '400 BadRequest'],
  ['gracePeriodSeconds=1.5', '400 BadRequest'],
  ['gracePeriodSeconds=99999999999999999999', '400 BadRequest'],
  ['gracePeriodSeconds=1&gracePeriodSeconds=2', '400 BadRequest'],
  ['propagationPolicy=Foo', '422 Invalid'],
  ['propagationPolicy=', '422 Invalid'],
  ['propagationPolicy=Orphan&propagationPolicy=Background', '400 BadRequest'],
  ['propagationPolicy=Orphan&orphanDependents=true', '422 Invalid'],
  ['propagationPolicy=Orphan&orphanDependents=false', '422 Invalid'],
  ['ignoreStoreReadErrorWithClusterBreakingPotential=true', '422 Invalid'],
  ['uid=nope', '409 Conflict'],
  ['uid=', '409 Conflict'],
  ['uid=a&uid=b', '400 BadRequest'],
  ['resourceVersion=1', '409 Conflict'],
  ['resourceVersion=1&resourceVersion=2', '400 BadRequest'],
  ['resourceVersion=1&dryRun=All', '409 Conflict'],
  ['preconditions.uid=nope', '400 BadRequest'],
  ['fieldManager=me', '400 BadRequest'],
  ['watch=true', '400 BadRequest'],
];

const ofWrites: typeof everywhere = [
  ['fieldValidation=strict', '422 Invalid'],
  ['fieldValidation=Strict&fieldValidation=Ignore', '400 BadRequest'],
  [`fieldManager=${'ä'.repeat(65)}`, '422 Invalid'],
  ['fieldManager=a%0Ab', '422 Invalid'],
  ['fieldManager=a%C2%A0b', '422 Invalid'],
  ['fieldManager=a&fieldManager=b', '400 BadRequest'],
  ['propagationPolicy=Foreground', '400 BadRequest'],
  ['labelSelector=a', '400 BadRequest'],
];

async function refusesAll(
  t: ExecutionContext,
  queries: typeof everywhere,
  ask: (place: Place, query: string) => Promise<string>,
): Promise<void> {
  const place = await aPlace();
  const before = await place.stored();
  for (const [query, expected] of queries) t.is(await ask(place, escaped(query)), expected, query);
  t.is(await place.stored(), before);
}

/** Escapes what clients escape: characters that are not ASCII. */
function escaped(query: string): string {
  return query.replaceAll(/[^!-~]/gu, encodeURIComponent);
}

test('a malformed query does not delete an object', (t) =>
  refusesAll(
    t,
    [...everywhere, ...ofDeletes, ['labelSelector=a', '400 BadRequest'], ['limit=1', '400 BadRequest']],
    ({ client, one }, query) => refusedWith(client, 'DELETE', `${one}?${query}`),
  ));

test('a malformed query does not delete a collection', (t) =>
  refusesAll(
    t,
    [
      ...everywhere,
      ...ofDeletes,
      ['resourceVersion=1&resourceVersionMatch=Exact', '400 BadRequest'],
      ['resourceVersion=1&resourceVersionMatch=NotOlderThan', '400 BadRequest'],
      ['resourceVersion=abc', '400 BadRequest'],
      ['resourceVersionMatch=Exact', '422 Invalid'],
      ['sendInitialEvents=true', '400 BadRequest'],
      ['limit=', '400 BadRequest'],
      ['limit=abc', '400 BadRequest'],
      ['limit=1&limit=2', '400 BadRequest'],
      ['limit=99999999999999999999', '400 BadRequest'],
      ['timeoutSeconds=abc', '400 BadRequest'],
      ['labelSelector=a&labelSelector=b', '400 BadRequest'],
      ['LabelSelector=a', '400 BadRequest'],
      ['labelSelector=%zz', '400 BadRequest'],
      ['continue=abc', '400 BadRequest'],
    ],
    ({ client, all }, query) => refusedWith(client, 'DELETE', `${all}?${query}`),
  ));

test('a malformed query creates nothing', (t) =>
  refusesAll(t, [...everywhere, ...ofWrites, ['force=true', '400 BadRequest']], ({ client, all }, query) =>
    refusedWith(client, 'POST', `${all}?${query}`, { body: anApiExport({ name: 'three' }) }),
  ));

test('a malformed query replaces nothing', (t) =>
  refusesAll(t, [...everywhere, ...ofWrites, ['force=true', '400 BadRequest']], async ({ client, one }, query) =>
    refusedWith(client, 'PUT', `${one}?${query}`, { body: { ...(await client.get(one)), spec: { changed: true } } }),
  ));

test('a malformed query patches nothing', (t) =>
  refusesAll(t, [...everywhere, ...ofWrites, ['force=true', '422 Invalid'], ['force=', '422 Invalid']], ({ client, one }, query) =>
    refusedWith(client, 'PATCH', `${one}?${query}`, {
      headers: { 'content-type': 'application/merge-patch+json' },
      body: { spec: { changed: true } },
    }),
  ));

test('options in the query apply beside those of a body, and may not contradict them', async (t) => {
  const { client, one, all, stored } = await aPlace();
  const before = await stored();
  const body = { kind: 'DeleteOptions', apiVersion: 'v1' };

  for (const path of [one, all]) {
    t.is(await refusedWith(client, 'DELETE', `${path}?dryRun=All`, { body: {} }), '200 done');
    t.is(await refusedWith(client, 'DELETE', `${path}?dryRun=All`, { body: { ...body, propagationPolicy: 'Background' } }), '200 done');
    t.is(await refusedWith(client, 'DELETE', `${path}?dryRun=`, { body: { ...body, dryRun: ['All'] } }), '422 Invalid');
    t.is(await refusedWith(client, 'DELETE', `${path}?uid=nope`, { body }), '409 Conflict');
    t.is(await refusedWith(client, 'DELETE', `${path}?uid=nope`, { body: { ...body, preconditions: { uid: 'other' } } }), '400 BadRequest');
    t.is(
      await refusedWith(client, 'DELETE', `${path}?gracePeriodSeconds=1`, { body: { ...body, gracePeriodSeconds: 2 } }),
      '400 BadRequest',
    );
  }
  t.is(await refusedWith(client, 'DELETE', `${one}?resourceVersion=1`, { body }), '409 Conflict');
  t.is(await refusedWith(client, 'DELETE', `${all}?resourceVersion=1`, { body }), '400 BadRequest');

  t.is(await stored(), before);
});

test('options that are understood are not refused, and those without an effect here are ignored', async (t) => {
  const { client, all } = await aPlace();
  const options: readonly (readonly [query: string, body: unknown])[] = [
    ['', { kind: 'DeleteOptions', apiVersion: 'v1' }],
    ['', { kind: '', apiVersion: '' }],
    ['', { kind: 'DeleteOptions', apiVersion: 'meta.k8s.io/v1', gracePeriodSeconds: 0, propagationPolicy: 'Foreground', dryRun: null }],
    ['', { apiVersion: 'apis.kcp.io/v1alpha2', orphanDependents: true, preconditions: null, dryRun: [] }],
    ['', { gracePeriodSeconds: -1, preconditions: {}, ignoreStoreReadErrorWithClusterBreakingPotential: false }],
    ['?gracePeriodSeconds=-1&propagationPolicy=Orphan&pretty=x&timeout=1m30.5s', undefined],
    ['?gracePeriodSeconds=9223372036854775807&orphanDependents=&timeout=', undefined],
    ['?timeout=0&gracePeriodSeconds=1&gracePeriodSeconds=1', undefined],
    ...[
      '2562047h47m16.854775807s',
      '-9223372036854775808ns',
      '9223372036.854775807s',
      `${'0'.repeat(9_000)}1h`,
      '.5h',
      '1.h',
      '+1h1h',
      '-0',
    ].map((time) => [`?timeout=${encodeURIComponent(time)}`, undefined] as const),
    [`?timeout=1.${'9'.repeat(9_000)}h`, undefined],
    ['?gracePeriodSeconds=1', { gracePeriodSeconds: 1 }],
  ];

  for (const [query, body] of options) {
    await client.create(`${all}?fieldManager=m%C3%A4%20m&fieldValidation=&timeout=30s&pretty=true`, anApiExport({ name: 'three' }));
    const one = `${all}/three${query}`;
    t.is(await refusedWith(client, 'DELETE', one, body === undefined ? {} : { body }), '200 done', `${query} ${JSON.stringify(body)}`);
  }
  t.is((await client.list(all)).items.length, 2);
});

test('preconditions of a collection delete hold for each of its objects, and one that fails keeps them all', async (t) => {
  const { client, all, stored } = await aPlace();
  const before = await stored();
  const [one, two] = (await client.list(all)).items;

  for (const { metadata } of [one!, two!])
    for (const preconditions of [{ uid: metadata.uid }, { resourceVersion: metadata.resourceVersion }])
      t.is(await refusedWith(client, 'DELETE', all, { body: { preconditions } }), '409 Conflict');
  t.is(await stored(), before);

  const preconditions = { uid: two!.metadata.uid, resourceVersion: two!.metadata.resourceVersion };
  const selected = `${all}?fieldSelector=metadata.name%3Dtwo`;
  t.is(await refusedWith(client, 'DELETE', selected, { body: { preconditions, dryRun: ['All'] } }), '200 done');
  t.is(await stored(), before);
  t.is(await refusedWith(client, 'DELETE', selected, { body: { preconditions } }), '200 done');
  t.is(await refusedWith(client, 'DELETE', `${all}?uid=${one!.metadata.uid}`), '200 done');
  t.is(await refusedWith(client, 'DELETE', all, { body: { preconditions } }), '200 done');
});

test('preconditions hold for a whole collection, not for each page of it', async (t) => {
  const client = (await server()).client();
  const all = aPath({ cluster: 'paged' });
  const names = Array.from({ length: 12 }, (_, at) => `n${String(at).padStart(2, '0')}`);
  for (const name of names) {
    const labels = { ends: String(name === names[0] || name === names.at(-1)) };
    await client.create(all, anApiExport({ name, labels, annotations: { long: 'x'.repeat(200_000) } }));
  }
  const { uid } = (await client.get(`${all}/${names[0]}`)).metadata;
  const selected = `${all}?labelSelector=ends%3Dtrue`;

  t.is(await refusedWith(client, 'DELETE', selected, { body: { preconditions: { uid } } }), '409 Conflict');

  t.deepEqual(
    (await client.list(all)).items.map(({ metadata }) => metadata.name),
    names,
  );
});

test('strict validation refuses duplicate fields at any depth, in JSON, in YAML and in patches', async (t) => {
  const { client, one, all, stored } = await aPlace();
  const before = await stored();
  const strict = 'fieldValidation=Strict';
  const head = 'apiVersion: apis.kcp.io/v1alpha2\nkind: APIExport\nmetadata: {name: NAME}\n';
  const yaml = (name: string): RequestOptions => ({
    headers: { 'content-type': 'application/yaml' },
    body: `${head.replace('NAME', name)}spec: {a: 1}\nspec: {b: 2}\n`,
  });
  const patch = (language: string, body: string): RequestOptions => ({ headers: { 'content-type': `application/${language}+json` }, body });
  const patches = [
    patch('merge-patch', '{"spec":{"a":1},"spec":{"b":2}}'),
    patch('merge-patch', '{"spec":{"a":1,"a":2}}'),
    patch('json-patch', '[{"op":"add","path":"/spec/a","value":1,"value":2}]'),
    patch('json-patch', '[{"op":"add","path":"/spec/a","value":{"b":1,"b":2}}]'),
  ];

  for (const [name, twice] of [
    ['one', '"spec":{},"spec":{}'],
    ['one', '"spec":{"a":1,"\\u0061":2}'],
    ['one', '"spec":{"a":[{"b":{"c":1,"d":2,"c":3}}]}'],
    ['one","name":"one', '"spec":{}'],
    ['one","labels":{"a":"b","a":"c"},"x":"', '"spec":{}'],
    ['one","managedFields":[{"fieldsV1":{"f:a":{},"f:a":{}}}],"x":"', '"spec":{}'],
  ] as const) {
    const body = `{"apiVersion":"apis.kcp.io/v1alpha2","kind":"APIExport","metadata":{"name":"${name}"},${twice}}`;
    t.is(await refusedWith(client, 'PUT', `${one}?${strict}`, { body }), '400 BadRequest', body);
    const answer = await client.raw('POST', `${all}?${strict}`, { body: body.replaceAll('"one"', '"three"') });
    t.is(answer.status, 400);
    t.regex(
      (JSON.parse(answer.text) as KubeStatus).message ?? '',
      /strict decoding error: duplicate field "(?:spec|spec\.a|spec\.a\[0\]\.b\.c|metadata\.[^"]+)"/,
    );
  }
  t.is(await refusedWith(client, 'POST', `${all}?${strict}`, yaml('three')), '400 BadRequest');
  t.is(await refusedWith(client, 'PUT', `${one}?${strict}`, yaml('one')), '400 BadRequest');
  for (const options of patches)
    t.is(await refusedWith(client, 'PATCH', `${one}?${strict}`, options), '400 BadRequest', String(options.body));
  const stray = patch('json-patch', '[{"op":"add","path":"/spec/a","value":1,"dryrun":true}]');
  t.is(await refusedWith(client, 'PATCH', `${one}?${strict}`, stray), '422 Invalid');
  t.is(await stored(), before);

  for (const validation of ['', 'fieldValidation=Warn', 'fieldValidation=Ignore']) {
    t.is(await refusedWith(client, 'POST', `${all}?dryRun=All&${validation}`, yaml('three')), '201 done', validation);
    for (const options of patches) t.is(await refusedWith(client, 'PATCH', `${one}?dryRun=All&${validation}`, options), '200 done');
  }
});

test('the refusal of a strict write is short, however long or many the duplicate names are', async (t) => {
  const { client, one, all, stored } = await aPlace();
  const before = await stored();
  const long = '\\"'.repeat(10_000);
  const of = (metadata: string, rest = ''): string =>
    `{"apiVersion":"apis.kcp.io/v1alpha2","kind":"APIExport","metadata":{"name":"one"${metadata}}${rest}}`;
  const twice = '{"a":1,"a":2}';
  const json = [
    of('', `,"spec":${`{"${long}":`.repeat(50)}${twice}${'}'.repeat(50)}`),
    of('', `,"spec":${`[{"a":`.repeat(2_000)}${twice}${'}]'.repeat(2_000)}`),
    of('', `,"spec":{"${long}":1,"${long}":2}`),
    of(`,"${long}":1`),
    of(Array.from({ length: 5_000 }, (_, i) => `,"x${i}":1`).join('')),
    `{"apiVersion":"apis.kcp.io/v1alpha2","kind":"${long}","metadata":{"name":"one"}}`,
    `{"apiVersion":"${long}","kind":"APIExport","metadata":{"name":"one"}}`,
    of(`,"managedFields":[{${Array.from({ length: 200 }, (_, i) => `"${i}${'x'.repeat(2_000)}":1`).join()}}]`),
  ];
  const key = 'k'.repeat(100_000);
  const yaml = [`"${key}": 1\n"${key}": 2\n`, `a: *${key}\n`, `a: !${key} 1\n`, `%${key}\n---\n`, `a: ${'9'.repeat(100_000)}e999x: 1\n`];

  for (const [type, bodies] of [
    ['application/json', json],
    ['application/yaml', yaml],
  ] as const)
    for (const body of bodies)
      for (const method of ['POST', 'PUT']) {
        const path = `${method === 'POST' ? all : one}?fieldValidation=Strict`;
        const { status, text } = await client.raw(method, path, { body, headers: { 'content-type': type } });
        t.is(status, 400, body.slice(0, 200));
        t.true(text.length < 64 * 1024, `${body.slice(0, 200)}: ${text.length}`);
      }
  t.is(await stored(), before);
});

test('a review accepts the options of a create, and refuses malformed ones', async (t) => {
  const { client } = await aPlace();
  const reviews = aPath({ group: 'authentication.k8s.io', version: 'v1', resource: 'selfsubjectreviews' });
  const body = { kind: 'SelfSubjectReview', apiVersion: 'authentication.k8s.io/v1' };

  t.is(await refusedWith(client, 'POST', `${reviews}?dryRun=All&fieldManager=x`, { body }), '201 done');
  t.is(await refusedWith(client, 'POST', `${reviews}?dryRun=`, { body }), '422 Invalid');
  t.is(await refusedWith(client, 'POST', `${reviews}?dryrun=All`, { body }), '400 BadRequest');
});

const unserved = [
  'text/html',
  'application/vnd.kubernetes.protobuf',
  'application/vnd.kubernetes.protobuf;q=0.5, text/*',
  'text/html;q=0',
  'text/html;q=abc',
  'json',
  ',',
  'application/json/x',
  'application/json;as=Junk;g=meta.k8s.io;v=v1',
  'application/json;v=v1',
  'application/json;stream=junk',
  'application/json;sv=v7',
  `application/json${', application/json'.repeat(64)}`,
];

test('a write whose answer its client accepts in no form is 406, and nothing is done', async (t) => {
  const { client, one, all, stored } = await aPlace();
  const before = await stored();
  const review = { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' };
  const patched = { 'content-type': 'application/merge-patch+json' };

  for (const accept of unserved) {
    const ask = (method: string, path: string, { headers = {}, ...options }: RequestOptions = {}): Promise<string> =>
      refusedWith(client, method, path, { ...options, headers: { ...headers, accept } });
    t.is(await ask('DELETE', one), '406 NotAcceptable', accept);
    t.is(await ask('DELETE', all), '406 NotAcceptable', accept);
    t.is(await ask('POST', all, { body: anApiExport({ name: 'three' }) }), '406 NotAcceptable', accept);
    t.is(await ask('PUT', one, { body: { ...(await client.get(one)), spec: { changed: true } } }), '406 NotAcceptable', accept);
    t.is(await ask('PATCH', one, { headers: patched, body: { spec: { changed: true } } }), '406 NotAcceptable', accept);
    const reviews = aPath({ group: 'authentication.k8s.io', version: 'v1', resource: 'selfsubjectreviews' });
    t.is(await ask('POST', reviews, { body: review }), '406 NotAcceptable', accept);
    for (const what of ['shards/amber', 'shards/amber/held', 'caches/one'])
      t.is(await ask('DELETE', `/services/cache/${what}`), '406 NotAcceptable', `${what}: ${accept}`);
  }

  t.is(await stored(), before);
});
