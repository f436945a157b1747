/**
 * The decision about who may read a view reads several objects. This store changes at the worst
 * moment: between two reads of one decision.
 */
import { test } from '../../support/test.js';
import type { Caller } from '../../../src/domain/caller.js';
import { Refused } from '../../../src/domain/errors.js';
import type { StoredObject } from '../../../src/domain/object.js';
import type { Scope } from '../../../src/domain/scope.js';
import type { TypeFreshnessReport } from '../../../src/domain/type-freshness.js';
import { ViewCallers, type ViewCallersParts } from '../../../src/web/views/view-callers.js';
import { aKey, clusterName, shardName } from '../../support/objects.js';

const alice: Caller = { user: 'alice', groups: [] };
const view = { kind: 'apiexport', cluster: clusterName('provider'), name: 'widgets', identity: undefined } as const;
const group = 'rbac.authorization.k8s.io';
const access = { verbs: ['access'], nonResourceURLs: ['/'] };
const content = { verbs: ['list'], apiGroups: ['apis.kcp.io'], resources: ['apiexports/content'] };

type Held = Readonly<Record<string, object>>;

/** `at`: the objects of each resource at a revision. `reading` is called at each read. */
function callers(
  at: (revision: number) => Held,
  { published, isWhole, reading }: { published: () => number; isWhole: () => boolean; reading: () => void },
) {
  const stored = (resource: string, object: object): StoredObject =>
    ({
      key: aKey({ shard: 'amber', cluster: 'provider', name: 'widgets', resource }),
      body: { bytes: new TextEncoder().encode(JSON.stringify(object)) },
    }) as unknown as StoredObject;
  const objects = {
    find: async () => [stored('apiexports', {})],
    get: async ({ resource: { resource } }: { resource: { resource: string } }) => stored(resource, at(published())[resource] ?? {}),
    snapshot: ({ resource }: Scope, revision: number) => ({
      revision,
      page: async () => {
        const held = at(revision)[resource];
        reading();
        return { objects: held === undefined ? [] : [stored(resource, held)], next: undefined };
      },
      close: () => {},
    }),
  } as unknown as ViewCallersParts['objects'];
  const revisions = {
    get published() {
      return published();
    },
    reachNewest: async () => {},
  } as ViewCallersParts['revisions'];
  const shard = {
    shard: shardName('amber'),
    connection: { kind: 'connected', forMs: 0, peer: '' },
    slices: 1,
    sourceConnected: true,
    changedAgoMs: 0,
    lagMs: 0,
  };
  const freshness = { ofType: async () => ({ shards: [{ ...shard, whole: isWhole() }] }) as unknown as TypeFreshnessReport };
  return new ViewCallers({ objects, revisions, freshness });
}

const always: Held = { logicalclusters: { status: { phase: 'Ready' } } };
const bound = { subjects: [{ kind: 'User', name: 'alice' }], roleRef: { apiGroup: group, kind: 'ClusterRole', name: 'r' } };

test('a right that a sync revokes while it is read admits nobody', async (t) => {
  let isWhole = false;
  const held = { ...always, clusterrolebindings: bound, clusterroles: { rules: [access, content] } };
  // The sync that revokes it ends once the old bindings were read.
  const deciding = callers(() => held, { published: () => 1, isWhole: () => isWhole, reading: () => (isWhole = true) });
  const refused = await t.throwsAsync(deciding.admitted(alice, view, 'list'), { instanceOf: Refused });
  t.is(refused?.refusal.reason, 'ServiceUnavailable');
  t.deepEqual(await deciding.admitted(alice, view, 'list'), { shard: shardName('amber'), cluster: view.cluster }, 'control');
});

test('an old binding with a new role admits nobody', async (t) => {
  let published = 1;
  const at = (revision: number): Held =>
    revision === 1
      ? { ...always, clusterrolebindings: bound, clusterroles: { rules: [access] } }
      : { ...always, clusterroles: { rules: [access, content] } };
  const deciding = callers(at, { published: () => published, isWhole: () => true, reading: () => (published = 2) });
  t.is(await deciding.admitted(alice, view, 'list'), undefined);
});
