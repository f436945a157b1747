/**
 * The Warning header of a write with duplicate field names. Whatever characters such a name has,
 * the write must be stored and answered with a warning.
 */
import { test } from '../../support/test.js';
import type { Answer, KubeClient } from '../../support/kube-client.js';
import { aPath } from '../../support/objects.js';
import { shared } from '../../support/shared.js';
import { TestServer } from '../../support/test-server.js';

/** Shared by all tests; none of them may cause an error in its log. */
const server = shared(
  () => TestServer.start(),
  async (made, t) => {
    await made.close();
    t.deepEqual(
      made.logged.filter(({ level }) => level === 'error'),
      [],
    );
  },
);

let clusters = 0;

async function aCluster(): Promise<{ client: KubeClient; path: (name?: string) => string }> {
  const cluster = `w${(clusters += 1)}`;
  return { client: (await server()).client(), path: (name) => aPath(name === undefined ? { cluster } : { cluster, name }) };
}

/** An object in which each of these names, written as JSON strings, occurs twice. */
function twice(names: readonly string[], metadata: unknown = { name: 'one' }): string {
  const members = names.map((name) => `"${name}":1,"${name}":2`).join(',');
  return `{${members},"apiVersion":"apis.kcp.io/v1alpha2","kind":"APIExport","metadata":${JSON.stringify(metadata)}}`;
}

/** The bytes of the header, read as UTF-8, as Go does. */
function warningOf({ headers }: Answer): string {
  return Buffer.from(headers['warning'] ?? '', 'latin1').toString();
}

/** The warning for one duplicate field. */
function warning(field: string): string {
  return `299 - ${JSON.stringify(`duplicate field ${field}`)}`;
}

const cut = 256 - 'duplicate field "'.length;

for (const [what, name, expected] of [
  ['ASCII', 'plain', warning('"plain"')],
  ['quotes and backslashes', '\\"\\\\', warning(String.raw`"\"\\"`)],
  ['Latin-1', 'é', warning('"é"')],
  ['Japanese', '日本', warning('"日本"')],
  ['a letter whose low byte is 0', 'Ā', warning('"Ā"')],
  ['a letter whose low byte is a line feed', 'Ċ', warning('"Ċ"')],
  ['a pair of surrogates', '😀', warning('"😀"')],
  ['half a pair', '\\ud800', warning(String.raw`"\ud800"`)],
  ['line ends', '\\r\\nX-Evil: 1', warning(String.raw`"\r\nX-Evil: 1"`)],
  ['NUL', '\\u0000', warning(String.raw`"\u0000"`)],
  ['DEL', 'a\u007fb', warning('"ab"')],
  ['a control character of Latin-1', 'a\u0085\u009fb', warning('"ab"')],
  ['separators, a byte order mark and spaces that nobody sees', 'a\u2028\u2029\ufeff\u00a0\u200bb', warning('"ab"')],
  ['no characters at all', 'a\uffff\ue000\u{10ffff}b', warning('"ab"')],
  ['256 characters and more', 'x'.repeat(70_000), warning(`"${'x'.repeat(cut)}`)],
  ['pairs that the cut would part', `${'x'.repeat(cut - 1)}😀`, warning(`"${'x'.repeat(cut - 1)}`)],
  ['many characters of three bytes', '日'.repeat(70_000), warning(`"${'日'.repeat(cut)}`)],
] as const) {
  test(`a create and an update that repeat a name of ${what} are stored and answered with a warning`, async (t) => {
    const { client, path } = await aCluster();

    const created = await client.raw('POST', path(), { body: twice([name]), timeoutMs: 8_000 });
    const { metadata } = await client.get(path('one'));
    const next = { name: 'one', resourceVersion: metadata.resourceVersion, labels: { changed: 'yes' } };
    const updated = await client.raw('PUT', path('one'), { body: twice([name], next), timeoutMs: 8_000 });

    t.deepEqual([created.status, updated.status], [201, 200]);
    t.deepEqual([warningOf(created), warningOf(updated)], [expected, expected]);
    t.deepEqual((await client.get(path('one'))).metadata.labels, { changed: 'yes' });
    t.false('x-evil' in created.headers);
  });
}

for (const [what, names] of [
  ['a hundred long names', Array.from({ length: 100 }, (_, i) => `k${i}${'y'.repeat(3_000)}`)],
  ['a hundred long names in Japanese', Array.from({ length: 100 }, (_, i) => `k${i}${'日'.repeat(1_000)}`)],
  ['three thousand names', Array.from({ length: 3_000 }, (_, i) => `k${i}${'y'.repeat(60)}`)],
] as const) {
  test(`the warnings about ${what} take at most 4 KiB, and are the first ones`, async (t) => {
    const { client, path } = await aCluster();

    for (const [query, body] of [
      ['', twice(names)],
      ['?dryRun=All', twice(names, { name: 'two' })],
    ] as const) {
      const answer = await client.raw('POST', `${path()}${query}`, { body, timeoutMs: 8_000 });
      const lines = warningOf(answer).split(', ');

      t.is(answer.status, 201);
      t.true(Buffer.byteLength(lines.join('')) <= 4 * 1024);
      t.true(lines.length > 3);
      t.true(lines.every((line, i) => line.startsWith(`299 - "duplicate field \\"k${i}`) && line.endsWith('"')));
    }
  });
}
