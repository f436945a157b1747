/**
 * The demo without a shape: a cache with fresh certificates, two recorded kcp shards that push
 * their real objects into it over websockets, and what a client then sees. It stays up until it is
 * interrupted.
 */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Authority } from '../../src/certificates/authority.js';
import { systemClock } from '../../src/clock.js';
import { loadSettings } from '../../src/config/settings.js';
import { createLog } from '../../src/diagnostics/log.js';
import { startServer, type RunningServer } from '../../src/server/server.js';
import { KubeClient } from '../support/kube-client.js';
import { shardName } from '../support/objects.js';
import { PushedShard } from './pushed-shard.js';
import { recordedObjects, type RecordedObject } from './recorded-shards.js';

const recording = 'kcp-2-shards.jsonl';
const everywhere = '/services/cache/shards/*/clusters/*';
const exports = `${everywhere}/apis/apis.kcp.io/v1alpha2/apiexports`;
const validityDays = 365;
const syncedMsMax = 30_000;

export type SingleCacheOptions = Readonly<{ directory: string; port: string; once: boolean }>;

export async function showSingleCache({ directory, port, once }: SingleCacheOptions): Promise<void> {
  await mkdir(directory, { recursive: true });
  const files = await writeCertificates(directory);
  const server = await start(directory, port, files.ca);
  say(`A cache is up at ${server.url}; everything it keeps is in ${directory}`);
  const client = new KubeClient({ url: server.url, ...files.client });
  const kubeconfig = await writeKubeconfig(directory, server.url, files);

  const objects = await recordedObjects(recording);
  const watched = await watchUntilSynced(client);
  const pushers = await push(server.url, { directory, authority: files.authority }, objects);
  const list = await client.list(exports);
  say(
    `\nA wildcard list of APIExports shows ${list.items.length} objects of all shards, as of resourceVersion ${list.metadata.resourceVersion}:`,
  );
  for (const { metadata } of list.items)
    say(`  ${metadata.annotations?.['kcp.io/shard']}  ${metadata.annotations?.['kcp.io/cluster']}  ${metadata.name}`);
  say(`\nA watch that was open all along saw ${await watched.eventsFor(list.items.length)} of them arrive. Now one changes:`);
  touchOne(pushers, objects);
  say(`  ${await watched.next()}`);
  watched.close();

  if (!once) {
    say(`\nTry it:\n  kubectl --kubeconfig ${kubeconfig} get apiexports\n  kubectl --kubeconfig ${kubeconfig} get workspacetypes --watch`);
    say(
      `  curl --cacert ${join(directory, 'apiserver.crt')} --cert ${files.paths.certificate} --key ${files.paths.key} '${server.url}${exports}?limit=2'`,
    );
    say(`  build/src/main.js console --cache-kubeconfig ${kubeconfig}    # a link for the browser`);
    say('\nIt stays up until you press Ctrl-C.');
    await interrupted();
  }
  client.close();
  await Promise.all(pushers.map((pusher) => pusher.close()));
  await server.stop();
}

async function writeCertificates(directory: string) {
  const authority = await Authority.create({ clock: systemClock }, { name: 'strata demo', validityDays });
  const issued = await authority.issueClient({ user: 'demo', groups: ['system:masters'], validityDays });
  const paths = { ca: join(directory, 'client-ca.crt'), certificate: join(directory, 'client.crt'), key: join(directory, 'client.key') };
  await writeFile(paths.ca, authority.certificatePem);
  await writeFile(paths.certificate, issued.certificatePem);
  await writeFile(paths.key, issued.keyPem, { mode: 0o600 });
  return { authority, ca: paths.ca, paths, client: { certificate: issued.certificatePem, key: issued.keyPem } };
}

function start(directory: string, port: string, ca: string): Promise<RunningServer> {
  const flags = {
    'root-directory': directory,
    'bind-address': '127.0.0.1',
    'secure-port': port,
    'client-ca-file': ca,
    'log-level': 'warn',
    'log-format': 'pretty',
  };
  const settings = loadSettings({ flags, environment: {}, readFile: () => '' });
  return startServer(settings, {
    log: createLog({ clock: systemClock, stream: process.stderr }, { level: settings.logLevel, format: settings.logFormat }),
    clock: systemClock,
    random: Math.random,
  });
}

/** kubectl sees one logical cluster on one shard: here the recorded root workspace. */
async function writeKubeconfig(
  directory: string,
  url: string,
  { paths }: { paths: { certificate: string; key: string } },
): Promise<string> {
  const file = join(directory, 'cache.kubeconfig');
  const named = (name: string, what: string, value: unknown): unknown => ({ name, [what]: value });
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [
      named('cache', 'cluster', {
        server: `${url}/services/cache/shards/root/clusters/root`,
        'certificate-authority': join(directory, 'apiserver.crt'),
      }),
    ],
    users: [named('demo', 'user', { 'client-certificate': paths.certificate, 'client-key': paths.key })],
    contexts: [named('cache', 'context', { cluster: 'cache', user: 'demo' })],
    'current-context': 'cache',
  };
  await writeFile(file, `${JSON.stringify(config, null, 2)}\n`, { mode: 0o600 });
  return file;
}

/**
 * Opens one sender for each shard, with a certificate for that shard alone. Resolves when every
 * object is durable in the cache.
 */
async function push(
  url: string,
  { directory, authority }: { directory: string; authority: Authority },
  objects: readonly RecordedObject[],
): Promise<readonly PushedShard[]> {
  const ca = await readFile(join(directory, 'apiserver.crt'), 'utf8');
  const pushers: PushedShard[] = [];
  for (const name of new Set(objects.map(({ shard }) => shard))) {
    const shard = shardName(name);
    const issued = await authority.issueClient({ user: name, groups: ['strata'], speaksFor: { kind: 'shard', shard }, validityDays });
    const identity = { ca, certificate: issued.certificatePem, key: issued.keyPem };
    const pusher = await PushedShard.open({ shard: name, url, identity, objects }, AbortSignal.timeout(syncedMsMax));
    say(`Shard ${name} has synced its ${pusher.objects} objects of ${pusher.types} types in ${pusher.syncedMs} ms`);
    pushers.push(pusher);
  }
  return pushers;
}

async function watchUntilSynced(client: KubeClient) {
  const stop = new AbortController();
  const query = { watch: 'true', sendInitialEvents: 'true', resourceVersionMatch: 'NotOlderThan', allowWatchBookmarks: 'true' };
  const events = client.watch(exports, { query, signal: stop.signal });
  for (let event = await events.next(); event.value?.type !== 'BOOKMARK'; event = await events.next())
    if (event.done === true) throw new Error('the watch has ended');
  return {
    eventsFor: async (count: number): Promise<number> => {
      let seen = 0;
      while (seen < count && (await events.next()).done !== true) seen += 1;
      return seen;
    },
    next: async (): Promise<string> => {
      const { value } = await events.next();
      if (value === undefined) throw new Error('the watch has ended');
      const { type, object } = value;
      return `${type} ${object.metadata.annotations?.['kcp.io/shard']} ${object.metadata.annotations?.['kcp.io/cluster']} ${object.metadata.name} at ${object.metadata.resourceVersion}`;
    },
    close: () => stop.abort(),
  };
}

/**
 * Changes an object through its shard's pusher, because only the pusher may write what it keeps.
 */
function touchOne(pushers: readonly PushedShard[], objects: readonly RecordedObject[]): void {
  const recorded = objects.find(({ collection }) => collection.endsWith('/apiexports'));
  const pusher = pushers.find(({ shard }) => shard === recorded?.shard);
  if (recorded === undefined || pusher === undefined) throw new Error('no APIExport was recorded');
  const { object } = recorded;
  const labels = { ...object.metadata.labels, 'example.io/seen-in': 'demo' };
  pusher.change({ ...recorded, object: { ...object, metadata: { ...object.metadata, labels } } });
}

async function interrupted(): Promise<void> {
  await new Promise<void>((resolveStop) => {
    process.once('SIGINT', () => resolveStop());
    process.once('SIGTERM', () => resolveStop());
  });
}

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}
