/**
 * No turn of the serving thread's event loop takes long, whatever a client sends within the bounds.
 * Each request goes over HTTP/1.1 and HTTP/2 to a server in a process of its own, which measures
 * its turns.
 */
import { test } from '../support/test.js';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { KubeClient, RequestOptions } from '../support/kube-client.js';
import { longestTurnMs, meteredEnvironment } from '../support/longest-turn.js';
import { aPath } from '../support/objects.js';
import { StrataProcess } from '../support/strata-process.js';

/**
 * The goal is 20 on a quiet machine; a server with the fault took from 130 ms to 5 s. On a shared
 * machine, one pass over 2.9 MB of brackets alone takes 22 to 35 ms, and all eight rounds were once
 * above 30.
 */
const turnMsMax = 40;
const roundsMax = 8;
const bodyBytes = 2_900_000;

const folder = mkdtempSync(join(tmpdir(), 'strata-turns-'));
const starting = StrataProcess.start({ environment: meteredEnvironment(folder) });
const clients = starting.then((server) => [server.client(), server.client({ http2: true })] as const);

test.after.always('the server ends', async () => {
  await (await starting)[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

/** Code is slow on its first run, and again on its first large body. */
test.before('the server is warm', async () => {
  for (const client of await clients) {
    for (let i = 0; i < 300; i++) {
      const [at, one] = [aPath({ cluster: 'warm' }), aPath({ cluster: 'warm', name: `w${i}` })];
      const text = anExport(`{"a":[1,-2.5e3,true,null,{"b":{}},[]],"c":"x${i}"}`, `w${i}`);
      await client.raw('POST', at, { body: i % 2 === 0 ? text : JSON.stringify(JSON.parse(text), null, 1) });
      await client.raw('PATCH', one, { headers: merge, body: '{"spec":{"a":1}}' });
      await client.raw('GET', one);
      if (i % 50 === 0) await client.raw('GET', `${at}?labelSelector=a!=b`, { headers: table });
      await client.raw('DELETE', one);
    }
    for (const spec of [numbers, lines, nested]) {
      await client.raw('POST', aPath({ cluster: 'warm' }), { body: anExport(spec) });
      await client.raw('DELETE', aPath({ cluster: 'warm', name: 'one' }));
    }
  }
});

const merge = { 'content-type': 'application/merge-patch+json' };
const jsonPatch = { 'content-type': 'application/json-patch+json' };
const yamlBody = { 'content-type': 'application/yaml' };
const yamlAnswer = { accept: 'application/yaml' };
const table = { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' };

function anExport(spec: string, name = 'one', metadata = ''): string {
  return `{"apiVersion":"apis.kcp.io/v1alpha2","kind":"APIExport","metadata":{"name":"${name}"${metadata}},"spec":${spec}}`;
}

function times(count: number, text: (index: number) => string): string {
  return Array.from({ length: count }, (_, i) => text(i)).join(',');
}

const numbers = `[${'1,'.repeat(bodyBytes / 2)}1]`;
const objects = `[${'{},'.repeat(bodyBytes / 3)}{}]`;
const nested = `[${`${'['.repeat(9_000)}${']'.repeat(9_000)},`.repeat(bodyBytes / 18_001)}1]`;
const names = `{${times(200_000, (i) => `"k${i}":1`)}}`;
const repeatedName = `{${'"":1,'.repeat(bodyBytes / 5)}"":1}`;
const lines = `[${'1,\n'.repeat(bodyBytes / 3)}1]`;
const escapes = `"${'\\u0041'.repeat(bodyBytes / 6)}"`;
/** As many values as one patch may have. */
const manyNumbers = `[${'1,'.repeat(490_000)}1]`;
const manyObjects = `[${'{},'.repeat(240_000)}{}]`;
const large = { numbers, objects, nested, names, 'a repeated name': repeatedName, lines, escapes };

type Hostile = Readonly<{
  what: string;
  /** The JSON of the object `one` before the request. */
  stored?: string;
  ask: (client: KubeClient, cluster: string, round: number) => Promise<Readonly<{ status: number }>>;
  expected: number;
}>;

const send = (method: string, options: RequestOptions, query = ''): Hostile['ask'] => {
  const isCreate = method === 'POST';
  return (client, cluster) => client.raw(method, `${aPath({ cluster, ...(isCreate ? {} : { name: 'one' }) })}${query}`, options);
};

const list = (query: string, headers: Record<string, string> = {}): Hostile['ask'] => {
  return (client, cluster) => client.raw('GET', `${aPath({ cluster })}?${query}`, { headers });
};

const operations = (count: number, operation: string): string => `[${times(count, () => operation)}]`;

const hostile: readonly Hostile[] = [
  ...Object.entries(large).map(([what, spec]): Hostile => ({
    what: `a create of 2.9 MB of ${what}`,
    ask: send('POST', { body: anExport(spec) }),
    expected: 201,
  })),
  ...Object.entries(large).map(([what, spec]): Hostile => ({
    what: `a PUT of 2.9 MB of ${what}, spelled otherwise`,
    stored: anExport(spec),
    ask: async (client, cluster) => {
      const { metadata } = await client.get(`${aPath({ cluster, name: 'one' })}`, {
        headers: { accept: 'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io' },
      });
      return client.raw('PUT', aPath({ cluster, name: 'one' }), {
        body: anExport(spec, 'one', `,"resourceVersion":"${metadata.resourceVersion}"`).replace('"spec":', '"spec" : '),
      });
    },
    expected: 200,
  })),
  {
    what: 'a create with 9,900 labels',
    ask: send('POST', { body: anExport('{}', 'one', `,"labels":{${times(9_900, (i) => `"l${i}":"v"`)}}`) }),
    expected: 201,
  },
  {
    what: 'a create with 9,900 bad labels',
    ask: send('POST', { body: anExport('{}', 'one', `,"labels":{${times(9_900, (i) => `"!${'x'.repeat(20)}/!${i}":"!"`)}}`) }),
    expected: 422,
  },
  {
    what: 'a create with 9,900 annotations',
    ask: send('POST', { body: anExport('{}', 'one', `,"annotations":{${times(9_900, (i) => `"a${i}":"xxxxxxxxxx"`)}}`) }),
    expected: 201,
  },
  {
    what: 'a create with 150,000 managed fields',
    ask: send('POST', { body: anExport('{}', 'one', `,"managedFields":[${'{},'.repeat(150_000)}{}]`) }),
    expected: 400,
  },
  {
    what: 'a create with 3,900 names that stand twice and 2.9 MB',
    ask: send('POST', { body: `${anExport(numbers).slice(0, -1)},${times(4_000, (i) => `"k${i % 100}":1`)}}` }),
    expected: 400,
  },
  {
    what: 'a JSON patch that inserts into an array of 1.4 million',
    stored: anExport(numbers),
    ask: send('PATCH', { headers: jsonPatch, body: operations(30, '{"op":"add","path":"/spec/0","value":1}') }),
    expected: 413,
  },
  {
    what: 'a JSON patch that inserts into an array of 490,000',
    stored: anExport(manyNumbers),
    ask: send('PATCH', { headers: jsonPatch, body: operations(30, '{"op":"add","path":"/spec/0","value":1}') }),
    expected: 200,
  },
  {
    what: 'a JSON patch of 10,000 operations',
    stored: anExport('[]'),
    ask: send('PATCH', { headers: jsonPatch, body: operations(10_000, '{"op":"add","path":"/spec/0","value":1}') }),
    expected: 200,
  },
  {
    what: 'a JSON patch of 10,000 operations on 240,000 objects',
    stored: anExport(manyObjects),
    ask: send('PATCH', { headers: jsonPatch, body: operations(10_000, '{"op":"add","path":"/spec/-","value":1}') }),
    expected: 200,
  },
  {
    what: 'a short JSON patch that copies much',
    stored: anExport(`{"a":[${'{},'.repeat(3_000)}{}]}`),
    ask: send('PATCH', { headers: jsonPatch, body: `[${times(200, (i) => `{"op":"copy","from":"/spec/a","path":"/spec/b${i}"}`)}]` }),
    expected: 200,
  },
  {
    what: 'a merge patch of 2.9 MB on 2.9 MB',
    stored: anExport(names),
    ask: send('PATCH', { headers: merge, body: `{"spec":${names}}` }),
    expected: 200,
  },
  {
    what: 'a merge patch of 100 bytes on 240,000 objects',
    stored: anExport(manyObjects),
    ask: (client, cluster, round) =>
      client.raw('PATCH', aPath({ cluster, name: 'one' }), { headers: merge, body: `{"metadata":{"labels":{"a":"${round}"}}}` }),
    expected: 200,
  },
  {
    what: 'a small patch on a small object',
    stored: anExport('{"a":1}'),
    ask: (client, cluster, round) =>
      client.raw('PATCH', aPath({ cluster, name: 'one' }), { headers: merge, body: `{"spec":{"a":${round}}}` }),
    expected: 200,
  },
  ...Object.entries({
    sequence: `[${'x,'.repeat(14_000)}x]`,
    lists: `[${'[],'.repeat(9_000)}x]`,
    aliases: `\n  a: &a x\n  b: [${'*a ,'.repeat(7_000)}x]`,
    lines: `\n${' - x\n'.repeat(6_000)}`,
  }).map(([what, spec]): Hostile => ({
    what: `a create in 30 KB of YAML ${what}`,
    ask: send('POST', {
      headers: yamlBody,
      body: `apiVersion: apis.kcp.io/v1alpha2\nkind: APIExport\nmetadata: {name: one}\nspec: ${spec}`,
    }),
    expected: 201,
  })),
  { what: 'a create in 30 KB of commas in YAML', ask: send('POST', { headers: yamlBody, body: `[${','.repeat(30_000)}` }), expected: 400 },
  {
    what: 'a read of 250 KB in YAML',
    stored: anExport(`[${'{},'.repeat(80_000)}{}]`),
    ask: send('GET', { headers: yamlAnswer }),
    expected: 200,
  },
  {
    what: 'a read of 250 KB indented',
    stored: anExport(`[${'{},'.repeat(80_000)}{}]`),
    ask: send('GET', {}, '?pretty=true'),
    expected: 200,
  },
  {
    what: 'a read of 250 KB that nests, indented',
    stored: anExport(`[${`${'['.repeat(30)}${']'.repeat(30)},`.repeat(4_000)}1]`),
    ask: send('GET', {}, '?pretty=true'),
    expected: 200,
  },
  {
    what: 'a read of 60 KB that nests, indented',
    stored: anExport(`[${`${'['.repeat(30)}${']'.repeat(30)},`.repeat(1_000)}1]`),
    ask: send('GET', {}, '?pretty=true'),
    expected: 200,
  },
  { what: 'a read of 2.9 MB as a table', stored: anExport(objects), ask: send('GET', { headers: table }), expected: 200 },
  { what: 'a list with 2.9 MB as a table', stored: anExport(objects), ask: list('', table), expected: 200 },
  { what: 'a list with 2.9 MB, compressed', stored: anExport(objects), ask: list('', { 'accept-encoding': 'gzip' }), expected: 200 },
  { what: 'a list with 2.9 MB in YAML', stored: anExport(objects), ask: list('', yamlAnswer), expected: 200 },
  {
    what: 'a list with 14 KB of notin',
    stored: anExport('{}'),
    ask: list(`labelSelector=${encodeURI(`a notin (${times(2_400, (i) => `v${i}`)})`)}`),
    expected: 200,
  },
  {
    what: 'a list with 14 KB of keys',
    stored: anExport('{}'),
    ask: list(`labelSelector=${times(2_000, (i) => `!k${i}`)}`),
    expected: 200,
  },
  {
    what: 'a list with a field selector of 14 KB',
    stored: anExport('{}'),
    ask: list(`fieldSelector=${times(800, () => 'metadata.name!=b')}`),
    expected: 200,
  },
  { what: 'a list with a continue token of 12 KB', ask: list(`continue=${'A'.repeat(12_000)}`), expected: 400 },
  {
    what: 'a delete with 15 KB of options',
    stored: anExport('{}'),
    ask: send('DELETE', { body: `{"preconditions":{"uid":"x"},"dryRun":[${'"All",'.repeat(2_400)}"All"]}` }),
    expected: 409,
  },
  { what: 'a delete with 2.9 MB of options', stored: anExport('{}'), ask: send('DELETE', { body: objects }), expected: 413 },
];

let clusters = 0;

for (const [http, index] of [
  ['HTTP/1.1', 0],
  ['HTTP/2', 1],
] as const) {
  for (const { what, stored, ask, expected } of hostile) {
    test.serial(`${what} over ${http} causes no turn of more than ${turnMsMax} ms`, async (t) => {
      const server = await starting;
      const client = (await clients)[index];
      const places: string[] = [];
      const prepare = async (): Promise<void> => {
        const cluster = `turns${(clusters += 1)}`;
        if (stored !== undefined) t.is((await client.raw('POST', aPath({ cluster }), { body: stored })).status, 201);
        places.push(cluster);
      };

      const stoodMs = await longestTurnMs(folder, { roundsMax, enoughMs: turnMsMax, prepare }, async (round) => {
        const { status } = await ask(client, places[round] ?? '', round);
        t.is(status, expected);
      });

      t.log(`${stoodMs} ms`);
      t.true(stoodMs <= turnMsMax, `${stoodMs} ms`);
      for (const cluster of places) await server.client().raw('DELETE', aPath({ cluster, name: 'one' }));
    });
  }
}
