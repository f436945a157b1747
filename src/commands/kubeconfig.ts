/** `strata kubeconfig`: everything that kubectl needs to read a cache, in one file. */
import { readAuthorities, readPair } from '../certificates/pair-files.js';
import { kubeconfigOptions } from '../config/options/command-options.js';
import { command, type Command } from './command.js';

const name = 'strata';

export const kubeconfig: Command = command({
  words: ['kubeconfig'],
  operands: '',
  help: 'Print a kubeconfig for kubectl, with the certificate and its key in it',
  options: kubeconfigOptions,
  run: async ({ options }, { print }) => {
    const { cache, caFile, shard = '*', cluster = '*' } = options;
    const { cert, key } = readPair(options, { cert: kubeconfigOptions.certFile.flag, key: kubeconfigOptions.keyFile.flag });
    const authority =
      caFile === undefined
        ? {}
        : { 'certificate-authority-data': encode(readAuthorities(caFile, 'CA of the cache', kubeconfigOptions.caFile.flag)) };
    const server = new URL(`/services/cache/shards/${shard}/clusters/${cluster}`, cache).href;
    // The kubeconfig is printed as JSON, because JSON is valid YAML.
    const config = {
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [{ name, cluster: { server, ...authority } }],
      users: [{ name, user: { 'client-certificate-data': encode(cert), 'client-key-data': encode(key) } }],
      contexts: [{ name, context: { cluster: name, user: name } }],
      'current-context': name,
    };
    print(`${JSON.stringify(config, null, 2)}\n`);
  },
});

function encode(pem: string): string {
  return Buffer.from(pem).toString('base64');
}
