import { test } from '../../support/test.js';
import fc from 'fast-check';
import { formatContinue, parseContinue } from '../../../src/web/kube/continue-token.js';
import { aKey, aScope } from '../../support/objects.js';

const after = aKey({ shard: 'birch', cluster: 'system:admin', namespace: 'default', name: 'a/b "c" ü' });

function reasonOf(text: string, scope = aScope()): string {
  const result = parseContinue(text, scope);
  return result.kind === 'refused' ? `${result.refusal.reason}: ${result.refusal.message}` : 'taken';
}

test('a token is parsed to its revision and key, with and without a revision', (t) => {
  for (const resourceVersion of ['1363999000000000001', undefined]) {
    const token = formatContinue({ resourceVersion, after }, aScope());

    t.regex(token, /^[\w-]+$/);
    t.deepEqual(parseContinue(token, aScope()), { kind: 'parsed', value: { resourceVersion, after } });
  }
});

test('a token continues only its own list', (t) => {
  const token = formatContinue({ resourceVersion: '7', after }, aScope());

  for (const place of [
    { cluster: 'acme' },
    { shard: 'amber' },
    { resource: 'shards' },
    { identity: 'hash' },
    { namespace: 'default' },
    { name: 'one' },
  ])
    t.is(reasonOf(token, aScope(place)), 'BadRequest: invalid continue token: it belongs to another list');
});

test('any text that is not a token is refused with 400', (t) => {
  const forged = (parts: unknown): string => Buffer.from(JSON.stringify(parts)).toString('base64url');
  const [version, hash, ...rest] = JSON.parse(
    Buffer.from(formatContinue({ resourceVersion: '7', after }, aScope()), 'base64url').toString(),
  ) as unknown[];
  const invalid = 'BadRequest: invalid continue token: continue key is not valid';

  for (const text of [
    '',
    'junk',
    '!!',
    forged({}),
    forged(null),
    forged([]),
    forged([2, hash, ...rest]),
    forged([version, hash, 7, ...rest.slice(1)]),
    forged([version, hash, '-1', ...rest.slice(1)]),
    forged([version, hash, '0', ...rest.slice(1)]),
    forged([version, hash, '9'.repeat(40), ...rest.slice(1)]),
    forged([version, hash, ...rest, 'more']),
    forged({ __proto__: null, length: 8 }),
  ])
    t.is(reasonOf(text), invalid, text);
  fc.assert(fc.property(fc.string(), (text) => reasonOf(text).startsWith('BadRequest')));
});
