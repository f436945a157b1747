/**
 * What a user of kcp does: creates workspaces on a chosen shard, exports an API from one, binds it
 * in another, and uses its objects.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { KubeError, type KubeClient, type KubeObject } from '../support/kube-client.js';

/** kcp makes a workspace ready within seconds, on a busy machine within many. */
const settleMsMax = 120_000;
const pollMs = 500;

const schemaName = 'today.cowboys.wildwest.dev';
const exportName = 'wildwest.dev';
const cowboys = 'apis/wildwest.dev/v1alpha1/namespaces/default/cowboys';

/** A workspace below root. */
export type Workspace = Readonly<{ name: string; path: string; cluster: string; shard: string }>;

export class LiveWorkspaces {
  readonly #client: KubeClient;

  /** `client`: a client of kcp's front proxy with all rights. */
  constructor(client: KubeClient) {
    this.#client = client;
  }

  async create(name: string, shard: string): Promise<Workspace> {
    const location = { selector: { matchLabels: { name: shard } } };
    const spec = { type: { name: 'universal', path: 'root' }, location };
    await this.#client.create('/clusters/root/apis/tenancy.kcp.io/v1alpha1/workspaces', { ...tenancy, metadata: { name }, spec });
    const ready = await this.#settled(
      `/clusters/root/apis/tenancy.kcp.io/v1alpha1/workspaces/${name}`,
      ({ status }) => phaseOf(status) === 'Ready',
    );
    const { cluster } = ready['spec'] as { cluster: string };
    return { name, path: `root:${name}`, cluster, shard };
  }

  async remove({ name }: Workspace): Promise<void> {
    await this.#remove(`/clusters/root/apis/tenancy.kcp.io/v1alpha1/workspaces/${name}`);
  }

  async exportCowboys({ path }: Workspace): Promise<void> {
    await this.#client.create(`/clusters/${path}/apis/apis.kcp.io/v1alpha1/apiresourceschemas`, cowboySchema);
    const resources = [{ group: 'wildwest.dev', name: 'cowboys', schema: schemaName, storage: { crd: {} } }];
    await this.exportNothing({ path }, exportName, { resources });
  }

  /** Creates an APIExport, by default without any API. */
  async exportNothing({ path }: Pick<Workspace, 'path'>, name: string, spec: unknown = {}): Promise<void> {
    const apiExport = { apiVersion: 'apis.kcp.io/v1alpha2', kind: 'APIExport', metadata: { name }, spec };
    await this.#client.create(`/clusters/${path}/apis/apis.kcp.io/v1alpha2/apiexports`, apiExport);
  }

  /** The names of the exports that kcp has, sorted. */
  async exports({ path }: Pick<Workspace, 'path'>): Promise<readonly string[]> {
    const { items } = await this.#client.list(`/clusters/${path}/apis/apis.kcp.io/v1alpha2/apiexports`);
    return items.map(({ metadata }) => metadata.name ?? '').toSorted();
  }

  async removeExport({ path }: Workspace, name: string): Promise<void> {
    await this.#remove(`/clusters/${path}/apis/apis.kcp.io/v1alpha2/apiexports/${name}`);
  }

  async removeCowboys(workspace: Workspace): Promise<void> {
    await this.removeExport(workspace, exportName);
    await this.#remove(`/clusters/${workspace.path}/apis/apis.kcp.io/v1alpha1/apiresourceschemas/${schemaName}`);
  }

  /** Resolves when kcp reports that the provider's API is bound in this workspace. */
  async bindCowboys({ path }: Workspace, provider: Workspace): Promise<void> {
    const spec = { reference: { export: { path: provider.path, name: exportName } } };
    const binding = { apiVersion: 'apis.kcp.io/v1alpha2', kind: 'APIBinding', metadata: { name: 'cowboys' }, spec };
    await this.#eventually(() => this.#client.create(`/clusters/${path}/apis/apis.kcp.io/v1alpha2/apibindings`, binding));
    await this.#settled(`/clusters/${path}/apis/apis.kcp.io/v1alpha2/apibindings/cowboys`, ({ status }) => phaseOf(status) === 'Bound');
  }

  async unbindCowboys({ path }: Workspace): Promise<void> {
    await this.#remove(`/clusters/${path}/apis/apis.kcp.io/v1alpha2/apibindings/cowboys`);
  }

  /** Creates an object of the bound API and returns it as stored. */
  async createCowboy({ path }: Workspace, name: string): Promise<KubeObject> {
    const cowboy = { apiVersion: 'wildwest.dev/v1alpha1', kind: 'Cowboy', metadata: { name }, spec: { intent: 'to ride' } };
    // kcp serves a bound API only some time after it reports it bound.
    await this.#eventually(() => this.#client.create(`/clusters/${path}/${cowboys}`, cowboy));
    return this.#client.get(`/clusters/${path}/${cowboys}/${name}`);
  }

  async removeCowboy({ path }: Workspace, name: string): Promise<void> {
    await this.#remove(`/clusters/${path}/${cowboys}/${name}`);
  }

  /** Retries, because parts of kcp learn of a change one after another. */
  async #eventually(ask: () => Promise<KubeObject>): Promise<KubeObject> {
    for (const deadline = performance.now() + settleMsMax; ; await sleep(pollMs)) {
      try {
        return await ask();
      } catch (error) {
        if (!(error instanceof KubeError) || performance.now() > deadline) throw error;
      }
    }
  }

  #settled(path: string, isSettled: (object: KubeObject) => boolean): Promise<KubeObject> {
    return this.#until(path, ({ status, text }) => {
      const object = JSON.parse(text) as KubeObject;
      return status === 200 && isSettled(object) ? object : undefined;
    });
  }

  /** Deletes the object and resolves when it is gone, after all finalizers. */
  async #remove(path: string): Promise<void> {
    await this.#client.delete(path);
    await this.#until(path, ({ status }) => (status === 404 ? true : undefined));
  }

  async #until<Found>(path: string, find: (answer: Awaited<ReturnType<KubeClient['raw']>>) => Found | undefined): Promise<Found> {
    for (const deadline = performance.now() + settleMsMax; ; await sleep(pollMs)) {
      const answer = await this.#client.raw('GET', path);
      const found = find(answer);
      if (found !== undefined) return found;
      if (performance.now() > deadline) throw new KubeError(`waited ${settleMsMax} ms in vain for ${path}`, answer);
    }
  }
}

const tenancy = { apiVersion: 'tenancy.kcp.io/v1alpha1', kind: 'Workspace' } as const;

const cowboySchema = {
  apiVersion: 'apis.kcp.io/v1alpha1',
  kind: 'APIResourceSchema',
  metadata: { name: schemaName },
  spec: {
    group: 'wildwest.dev',
    names: { kind: 'Cowboy', listKind: 'CowboyList', plural: 'cowboys', singular: 'cowboy' },
    scope: 'Namespaced',
    versions: [
      {
        name: 'v1alpha1',
        served: true,
        storage: true,
        schema: { type: 'object', properties: { spec: { type: 'object', properties: { intent: { type: 'string' } } } } },
      },
    ],
  },
} as const;

function phaseOf(status: unknown): unknown {
  return (status as { phase?: unknown } | undefined)?.phase;
}
