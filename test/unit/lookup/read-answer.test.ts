import { test } from '../../support/test.js';
import { readList, readObject, refusalOf } from '../../../src/lookup/read-answer.js';

function anAnswer(status: number, body: unknown, retryAfterMs?: number) {
  return { status, text: typeof body === 'string' ? body : JSON.stringify(body), retryAfterMs };
}

function aStatus(reason: string, message = 'why'): Readonly<Record<string, unknown>> {
  return { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', reason, message };
}

const object =
  '{"kind":"APIExport","metadata":{"name":"one","annotations":{"kcp.io/shard":"amber"}},"spec":{"big":9007199254740993,"one":1.0}}';

test('an object is returned as its unchanged text, with its shard', (t) => {
  t.deepEqual(readObject(anAnswer(200, object)), { kind: 'found', object: { shard: 'amber', text: object } });
});

test('NotFound and ambiguous are answers, with the words of the cache', (t) => {
  t.deepEqual(readObject(anAnswer(404, aStatus('NotFound'))), { kind: 'absent', missing: 'path', message: 'why' });
  t.deepEqual(readObject(anAnswer(409, aStatus('Conflict'))), { kind: 'ambiguous', message: 'why' });
  t.like(readObject(anAnswer(404, { ...aStatus('NotFound'), details: { name: 'one', kind: 'apiexports' } })), { missing: 'object' });
  t.like(readList(anAnswer(404, { ...aStatus('NotFound'), details: { kind: 'apiexports' } })), { kind: 'absent', missing: 'type' });
});

test('any other answer that is no object is a fault, above all a 404 that no cache has sent', (t) => {
  for (const [answer, kind] of [
    [anAnswer(404, '<html>not found</html>'), 'unreadable'],
    [anAnswer(404, { reason: 'NotFound' }), 'unreadable'],
    [anAnswer(404, aStatus('Gone')), 'refused'],
    [anAnswer(409, aStatus('AlreadyExists')), 'refused'],
    [anAnswer(403, aStatus('Forbidden')), 'refused'],
    [anAnswer(301, ''), 'unreadable'],
    [anAnswer(200, '{"kind":"APIExport"}'), 'unreadable'],
    [anAnswer(200, 'hello'), 'unreadable'],
    [anAnswer(204, ''), 'unreadable'],
  ] as const)
    t.is((t.throws(() => readObject(answer)) as Error & { kind?: string }).kind, kind, answer.text);

  t.like(refusalOf(anAnswer(429, aStatus('TooManyRequests'), 1_000)), {
    kind: 'refused',
    status: 429,
    reason: 'TooManyRequests',
    retryAfterMs: 1_000,
    message: 'the cache refused (429): why',
  });
});

test('a page of a list has its objects with every digit, and says whether more follow', (t) => {
  const page = (metadata: string): string => `{"kind":"APIExportList","items":[${object},${object}],"metadata":${metadata}}`;

  const more = readList(anAnswer(200, page('{"resourceVersion":"7","continue":"abc"}')));
  const last = readList(anAnswer(200, page('{"resourceVersion":"7"}')));

  t.deepEqual(more, { kind: 'page', page: { objects: [1, 2].map(() => ({ shard: 'amber', text: object })), next: 'abc' } });
  t.is(last.kind === 'page' ? last.page.next : '?', undefined);
  t.throws(() => readList(anAnswer(200, object)), { message: 'the answer of the cache is not a list' });
});
