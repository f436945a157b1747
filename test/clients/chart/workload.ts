/** The pods of a release, as its StatefulSets and Deployments describe them. */
import type { Rendered } from './helm.js';

export type Volume = Readonly<{
  name: string;
  secret?: Readonly<{ secretName: string; defaultMode?: number }>;
  configMap?: Readonly<{ name: string }>;
  emptyDir?: object;
}>;

export type Probe = Readonly<{ httpGet: Readonly<{ path: string; port: string; scheme?: string }> }>;

export type Container = Readonly<{
  args: readonly string[];
  env?: readonly Readonly<{ name: string; valueFrom: Readonly<{ fieldRef: Readonly<{ fieldPath: string }> }> }>[];
  ports?: readonly Readonly<{ name: string; containerPort: number }>[];
  volumeMounts?: readonly Readonly<{ name: string; mountPath: string }>[];
  securityContext?: unknown;
  resources?: Readonly<{ limits?: Readonly<Record<string, unknown>> }>;
  startupProbe?: Probe;
  readinessProbe?: Probe;
  livenessProbe?: Probe;
}>;

export type PodSpec = Readonly<{
  securityContext?: Readonly<{ runAsUser?: number; runAsGroup?: number; fsGroup?: number; seccompProfile?: unknown }>;
  containers: readonly [Container];
  volumes?: readonly Volume[];
}>;

export type Workload = Readonly<{
  name: string;
  component: string;
  replicas: number;
  annotations: Readonly<Record<string, string>>;
  pod: PodSpec;
  container: Container;
  /** Names of volumes for which each pod has a claim of its own. */
  claims: readonly string[];
}>;

type WorkloadSpec = Readonly<{
  replicas: number;
  template: Readonly<{ metadata: Readonly<{ annotations?: Readonly<Record<string, string>> }>; spec: PodSpec }>;
  volumeClaimTemplates?: readonly Readonly<{ metadata: Readonly<{ name: string }> }>[];
}>;

const order = ['cache', 'agent', 'front-door'];

/** The cache comes first. */
export function workloadsOf(documents: readonly Rendered[]): readonly Workload[] {
  return documents
    .filter(({ kind }) => kind === 'StatefulSet' || kind === 'Deployment')
    .map(({ metadata, spec }) => {
      const { replicas, template, volumeClaimTemplates = [] } = spec as WorkloadSpec;
      return {
        name: metadata.name,
        component: metadata.labels?.['app.kubernetes.io/component'] ?? '',
        replicas,
        annotations: template.metadata.annotations ?? {},
        pod: template.spec,
        container: template.spec.containers[0],
        claims: volumeClaimTemplates.map((claim) => claim.metadata.name),
      };
    })
    .toSorted((one, other) => order.indexOf(one.component) - order.indexOf(other.component));
}
