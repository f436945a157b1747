/**
 * Shows several servers over one etcd: three members and two servers behind one address, each a
 * process. Objects are written and watched while a server and a member of etcd are killed. Every
 * acknowledged write must exist, and every event come once and in order; any difference is thrown.
 *
 * Bounds: runMsMax in all, without the time that it stays up on request.
 */
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { deferred } from '../../src/domain/base/promises.js';
import { EtcdMembers } from '../faults/etcd/etcd-members.js';
import { BalancedServers } from '../faults/etcd/balanced-servers.js';
import { etcdProgram } from '../faults/etcd/etcd-program.js';
import { LongWatch } from '../support/machines/long-watch.js';
import { KubeError, type KubeClient } from '../support/kube-client.js';
import { positionOf } from '../support/watch-history.js';

export type EtcdDemoOptions = Readonly<{ stay: boolean; signal: AbortSignal }>;

const path = '/services/cache/shards/amber/clusters/acme/apis/apis.kcp.io/v1alpha2/apiexports';
const wildcard = '/services/cache/shards/%2A/clusters/%2A/apis/apis.kcp.io/v1alpha2/apiexports';
const [writers, rounds, killsAt] = [8, 60, 20];
const runMsMax = 120_000;
const againMs = 50;
const howToGetOne = `Install one (Debian: apt-get install etcd-server; others: https://github.com/etcd-io/etcd/releases), name its program in
TEST_ETCD_BIN, or install Go, which builds one.`;

export async function showEtcd({ stay, signal: interrupted }: EtcdDemoOptions): Promise<void> {
  const found = await etcdProgram();
  if ('why' in found) throw new Error(`${found.why}.\n${howToGetOne}`);
  const signal = AbortSignal.any([interrupted, AbortSignal.timeout(runMsMax)]);
  await using etcd = await EtcdMembers.start(found, { members: 3, isSecure: true, isDurable: true });
  await using servers = await BalancedServers.start(etcd);
  say(`etcd: ${etcd.endpoints.join(', ')}`);
  for (const server of servers.servers) say(`  a server: ${server.url}`);
  say(`  all of them: ${servers.url}\n`);

  const client = servers.client({ http2: true });
  const position = positionOf(await client.list(wildcard));
  const watch = new LongWatch(servers.client({ http2: true }), { id: 'watch', path: wildcard, position, covered: { covers: () => true } });
  watch.come();
  say(`${writers} writers create ${writers * rounds} objects, one watches all of them.`);
  const killed = deferredKills(etcd, servers);
  const acknowledged = await Promise.all(
    Array.from({ length: writers }, (_, i) => write(servers.client({ http2: true }), { writer: i, signal, killed })),
  );
  const kill = await killed.done;
  await untilSeen(watch, writers * rounds, signal);
  await watch.leave();

  const names = acknowledged.flat();
  const held = new Set((await client.list(path)).items.map(({ metadata }) => metadata.name));
  const seen = watch.events.filter(({ type }) => type === 'ADDED');
  const missing = names.filter((name) => !held.has(name));
  const inOrder = seen.every(({ position: at }, i) => i === 0 || at > (seen[i - 1]?.position ?? 0n));
  say(`  a server and a member of etcd were killed after ${kill.after} of them; the longest a write took since was ${kill.longestMs()} ms`);
  say(
    `  ${names.length} acknowledged, ${missing.length} missing; ${seen.length} events, ${inOrder ? 'each once and in order' : 'NOT in order'}`,
  );
  if (missing.length > 0 || !inOrder || seen.length !== names.length) throw new Error('something was lost, or came twice');
  say('\nEverything was right.');
  if (!stay || interrupted.aborted) return;
  say(`\nIt stays up until you interrupt it. Try:\n  curl --cacert ${servers.authority.certificateFile} --cert ${servers.master.certificateFile} \\
    --key ${servers.master.keyFile} ${servers.url}${path}`);
  await once(interrupted, 'abort');
}

type Kill = Readonly<{ after: number; longestMs: () => number }>;

type Kills = Readonly<{ noteWrite: (tookMs: number) => void; done: Promise<Kill> }>;

/** Kills a server and a member once enough objects are written. */
function deferredKills(etcd: EtcdMembers, servers: BalancedServers): Kills {
  const done = deferred<Kill>();
  let [written, longestMs, isDue] = [0, 0, true];
  const kill = async (after: number): Promise<void> => {
    await Promise.all([servers.kill(0), etcd.signal(0, 'SIGKILL')]);
    done.resolve({ after, longestMs: () => longestMs });
  };
  return {
    done: done.promise,
    noteWrite: (tookMs) => {
      written += 1;
      if (!isDue) longestMs = Math.max(longestMs, Math.round(tookMs));
      if (!isDue || written < writers * killsAt) return;
      isDue = false;
      void kill(written);
    },
  };
}

/**
 * Sends a write again if its connection broke, because it may have been done. Returns the names
 * that exist after that.
 */
async function write(
  client: KubeClient,
  { writer, signal, killed }: Readonly<{ writer: number; signal: AbortSignal; killed: Kills }>,
): Promise<readonly string[]> {
  const names: string[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const name = `export-${writer}-${round}`;
    const beganMs = performance.now();
    for (;;) {
      signal.throwIfAborted();
      try {
        await client.create(path, { apiVersion: 'apis.kcp.io/v1alpha2', kind: 'APIExport', metadata: { name }, spec: {} });
        break;
      } catch (error) {
        if (error instanceof KubeError && error.status === 409) break;
        await pause(againMs);
      }
    }
    killed.noteWrite(performance.now() - beganMs);
    names.push(name);
  }
  return names;
}

async function untilSeen(watch: LongWatch, count: number, signal: AbortSignal): Promise<void> {
  while (watch.events.filter(({ type }) => type === 'ADDED').length < count) {
    signal.throwIfAborted();
    if (watch.failure !== undefined) throw new Error(watch.failure);
    await pause(againMs);
  }
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}
