/**
 * What a shard pushes of a provider whose APIExport has a view: what kcp replicates of the logical
 * cluster `provider`.
 */
import type { PushedObject } from '../../../src/frames/frame.js';
import { pushedObject } from '../raw-pusher.js';

export const rbac = 'rbac.authorization.k8s.io';
export const providerView = '/services/apiexport/provider/widgets';
const reading = ['get', 'list', 'watch'];

export type Rule = Readonly<Record<string, readonly string[]>>;
export type Subject = Readonly<{ kind: string; name: string }>;

export const access: Rule = { verbs: ['access'], nonResourceURLs: ['/'] };
export const content: Rule = { verbs: reading, apiGroups: ['apis.kcp.io'], resources: ['apiexports/content'], resourceNames: ['widgets'] };

export function providerObject(object: Readonly<{ metadata: object; [member: string]: unknown }>, cluster = 'provider'): PushedObject {
  return pushedObject({ ...object, metadata: { ...object.metadata, uid: 'u' } }, cluster);
}

export function aRole(name: string, rules: readonly Rule[], cluster = 'provider') {
  return providerObject({ apiVersion: `${rbac}/v1`, kind: 'ClusterRole', metadata: { name }, rules }, cluster);
}

export function aBinding(name: string, role: string, subjects: readonly Subject[], cluster = 'provider') {
  const named = subjects.map((subject) => ({ apiGroup: rbac, ...subject }));
  const roleRef = { apiGroup: rbac, kind: 'ClusterRole', name: role };
  return providerObject({ apiVersion: `${rbac}/v1`, kind: 'ClusterRoleBinding', metadata: { name }, subjects: named, roleRef }, cluster);
}

export function anExport(identityHash: string) {
  const resource = { group: 'machines.svm.io', name: 'instances', schema: 'v1.instances.machines.svm.io' };
  const spec = { resources: [{ ...resource, storage: { virtual: { identityHash } } }] };
  const status = { identityHash: 'own' };
  return providerObject({ apiVersion: 'apis.kcp.io/v1alpha2', kind: 'APIExport', metadata: { name: 'widgets' }, spec, status });
}

export function aLogicalCluster({ phase = 'Ready', required = '' } = {}) {
  const annotations = required === '' ? {} : { 'authorization.kcp.io/required-groups': required };
  const metadata = { name: 'cluster', annotations };
  return providerObject({ apiVersion: 'core.kcp.io/v1alpha1', kind: 'LogicalCluster', metadata, spec: {}, status: { phase } });
}

/** More bindings than a server reads to decide about one request; they precede all others. */
export function longBindings(): readonly PushedObject[] {
  return Array.from({ length: 400 }, (_, i) =>
    aBinding(
      `a${i}`,
      'reads',
      Array.from({ length: 60 }, (__, j) => ({ kind: 'User', name: `u${i}-${j}` })),
    ),
  );
}
