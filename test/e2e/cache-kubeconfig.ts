/**
 * Writes a kubeconfig for a cache, like the one that sharded-test-server writes for a cache server
 * it starts.
 */
import { writeFile } from 'node:fs/promises';
import type { Certificate } from '../support/test-authority.js';

export async function writeCacheKubeconfig(
  file: string,
  { url, authorityFile, master }: Readonly<{ url: string; authorityFile: string; master: Certificate }>,
): Promise<string> {
  const kubeconfig = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'cache', cluster: { server: url, 'certificate-authority': authorityFile } }],
    users: [{ name: 'cache', user: { 'client-certificate': master.certificateFile, 'client-key': master.keyFile } }],
    contexts: [{ name: 'cache', context: { cluster: 'cache', user: 'cache' } }],
    'current-context': 'cache',
  };
  await writeFile(file, JSON.stringify(kubeconfig));
  return file;
}
