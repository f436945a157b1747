/**
 * An APIExport of amber as its pusher syncs it. It has a uid, because no other cache accepts an
 * object without one.
 */
import { parseCanonicalPath } from '../../../src/domain/cluster.js';
import { compose } from '../../../src/json/compose.js';
import { scanObject } from '../../../src/json/object-text.js';
import type { Term, Push } from '../../../src/domain/push.js';
import { aKey, anApiExport } from '../../support/objects.js';
import { firstTerm } from '../../support/pushes.js';

export function anUpsert(
  name = 'one',
  { cluster = 'acme', path, by = firstTerm }: Readonly<{ cluster?: string; path?: string; by?: Term }> = {},
): Push {
  const key = aKey({ name, cluster });
  const ofPath = path === undefined ? {} : { 'kcp.io/path': path };
  const annotations = { 'kcp.io/cluster': key.cluster, 'kcp.io/shard': key.shard, ...ofPath };
  const text = JSON.stringify(anApiExport({ name, uid: `uid-of-${name}`, annotations }));
  const scanned = scanObject(new TextEncoder().encode(text), 100);
  const body = compose(scanned, { place: key, apiVersion: 'apis.kcp.io/v1alpha2', version: 'v1alpha2', metadata: {} });
  const parsed = path === undefined ? undefined : parseCanonicalPath(path);
  return { kind: 'upsert', key, body, path: parsed, by: { kind: 'pusher', term: by } };
}
