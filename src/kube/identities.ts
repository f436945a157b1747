/**
 * The identity hashes of kcp's own APIExports. A request for all clusters names a type of such an
 * export as `resource:identity`, as kcp's informers do (kcp: pkg/server/bootstrap/identity.go). The
 * root shard has the exports themselves; every other shard keeps their identities in a ConfigMap.
 */
import { textAt } from '../domain/base/members.js';
import type { KubeClient } from './kube-client.js';
import { KubeRefusal } from './kube-client.js';

const configMapPath = '/clusters/system:shard/api/v1/namespaces/default/configmaps/apiexport-identity-cache';
const exportsPath = '/clusters/root/apis/apis.kcp.io/v1alpha2/apiexports';
const answerMsMax = 30_000;
const answerBytesMax = 4 * 1024 * 1024;

export class Identities {
  readonly #client: KubeClient;
  readonly #known = new Map<string, string>();

  constructor({ client }: { client: KubeClient }) {
    this.#client = client;
  }

  /** Throws KubeRefusal(404) while the shard has no identity for the APIExport. */
  async of(exportName: string, signal: AbortSignal): Promise<string> {
    const known = this.#known.get(exportName);
    if (known !== undefined) return known;
    const identity =
      textAt(await this.#find(configMapPath, signal), 'data', exportName) ??
      textAt(await this.#find(`${exportsPath}/${exportName}`, signal), 'status', 'identityHash');
    if (identity === undefined || identity === '')
      throw new KubeRefusal(404, 'NotFound', `the shard has no identity for the APIExport ${exportName} yet`);
    this.#known.set(exportName, identity);
    return identity;
  }

  /**
   * Call it after a 404 to a request with the identity, because the APIExport may have been
   * recreated.
   */
  forget(exportName: string): void {
    this.#known.delete(exportName);
  }

  async #find(path: string, signal: AbortSignal): Promise<unknown> {
    try {
      const text = await this.#client.read({ path, answerMsMax, silenceMsMax: answerMsMax, signal }, answerBytesMax);
      return text === undefined ? undefined : JSON.parse(text);
    } catch (error) {
      if (error instanceof KubeRefusal && error.status === 404) return undefined;
      throw error;
    }
  }
}
