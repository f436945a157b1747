/**
 * The token for the next page of a list: the revision of the first page, the scope, and the last
 * key sent. The token is opaque to clients. If it has no revision, the list continues at the newest
 * state.
 */
import { createHash } from 'node:crypto';
import { badRequest } from '../../domain/errors.js';
import type { Key } from '../../domain/key.js';
import { parsed, refused, type Parsed } from '../../domain/parsed.js';
import { formatScope, type Scope } from '../../domain/scope.js';

export type ContinueToken = Readonly<{ resourceVersion: string | undefined; after: Key }>;

const version = 1;
const scopeCharacters = 16;

export function formatContinue({ resourceVersion, after }: ContinueToken, scope: Scope): string {
  const { resource, shard, cluster, namespace, name } = after;
  const token = [version, scopeHash(scope), resourceVersion ?? '', resource.identity, shard, cluster, namespace, name];
  return Buffer.from(JSON.stringify(token)).toString('base64url');
}

/** Refuses a text that is no token, or belongs to another list. */
export function parseContinue(text: string, scope: Scope): Parsed<ContinueToken> {
  let token: unknown;
  try {
    token = JSON.parse(Buffer.from(text, 'base64url').toString());
  } catch {
    return refused(badRequest('invalid continue token: continue key is not valid'));
  }
  if (!Array.isArray(token) || token.length !== 8 || token[0] !== version || !token.slice(1).every((part) => typeof part === 'string')) {
    return refused(badRequest('invalid continue token: continue key is not valid'));
  }
  const [, hash, resourceVersion, identity, shard, cluster, namespace, name] = token as [number, ...string[]];
  if (hash !== scopeHash(scope)) return refused(badRequest('invalid continue token: it belongs to another list'));
  if (resourceVersion !== '' && !/^[1-9]\d{0,18}$/.test(resourceVersion ?? ''))
    return refused(badRequest('invalid continue token: continue key is not valid'));
  const after = { resource: { group: scope.group, resource: scope.resource, identity }, shard, cluster, namespace, name } as Key;
  return parsed({ resourceVersion: resourceVersion === '' ? undefined : resourceVersion, after });
}

function scopeHash(scope: Scope): string {
  return createHash('sha256').update(formatScope(scope)).digest('base64url').slice(0, scopeCharacters);
}
