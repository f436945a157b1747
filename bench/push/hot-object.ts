/**
 * How late are changes of other objects while one object of their type is updated all the time?
 *
 *   stand-in for a shard ─watch─▶ strata push ─websocket─▶ cache ─watch of others─▶ this process
 *
 * The others get 100 changes a second, first alone and then beside 10,000 updates of one object.
 * The stand-in and the watch are in one process. All these updates keep it busy, so its own delay
 * is in the figures.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { AgentProcess } from '../../test/support/agent-process.js';
import type { KubeObject } from '../../test/support/kube-client.js';
import { aPath } from '../../test/support/objects.js';
import { ShardStandIn } from '../../test/support/shard-stand-in.js';
import { StrataProcess } from '../../test/support/strata-process.js';
import { until } from '../../test/support/test-server.js';
import { percentile } from '../harness/statistics.js';
import { check, type Answer, type Question } from '../harness/question.js';

const others = 100;
const othersPerSecond = 100;
const hotPerSecond = 10_000;
const seconds = 10;
const stepMs = 2;
const arrivedMsMax = 10_000;
const p99MsMax = 20;
const type = 'apiexports.apis.kcp.io';
const path = aPath({ cluster: '*' });

export const hotObject: Question = {
  name: 'hot-object',
  family: 'push',
  asks: 'How late are the changes of other objects while one is updated all the time?',
  needs: ['push'],
  isLong: true,
  async ask() {
    const answers = [await askAt(0), await askAt(hotPerSecond)];
    return { figures: answers.flatMap(({ figures }) => figures), checks: answers.flatMap(({ checks }) => checks) };
  },
};

async function askAt(perSecond: number): Promise<Answer> {
  const shard = await ShardStandIn.start();
  await using cache = await StrataProcess.start();
  const client = cache.client();
  const stop = new AbortController();
  try {
    put(shard, 'hot', 0);
    for (let i = 0; i < others; i += 1) put(shard, `other-${i}`, 0);
    await using _ = await AgentProcess.start(cache, { shard: 'amber', kubeconfig: shard.kubeconfig });
    await until(async () => (await client.list(path)).items.length > others, arrivedMsMax);
    const sentAt = new Map<string, number>();
    const delaysMs: number[] = [];
    const watch = (async () => {
      for await (const { object } of client.watch(path, { query: { labelSelector: 'is=other' }, signal: stop.signal })) {
        const at = sentAt.get(sent(object.metadata.name ?? '', stateOf(object)));
        if (at !== undefined) delaysMs.push(performance.now() - at);
      }
    })();

    const startedMs = performance.now();
    let [hot, other] = [0, 0];
    for (let passed = 0; passed < seconds; passed = (performance.now() - startedMs) / 1_000) {
      for (; hot < passed * perSecond; hot += 1) put(shard, 'hot', hot + 1);
      for (; other < passed * othersPerSecond; other += 1) {
        const name = `other-${other % others}`;
        sentAt.set(sent(name, other + 1), performance.now());
        put(shard, name, other + 1);
      }
      await sleep(stepMs);
    }
    await until(() => delaysMs.length === sentAt.size, arrivedMsMax).catch(() => {});
    await until(async () => stateOf(await client.get(aPath({ name: 'hot', cluster: 'root' }))) === hot, arrivedMsMax).catch(() => {});

    const name = `${perSecond === 0 ? 'alone' : `beside ${perSecond} updates a second`}, seen after`;
    const last = stateOf(await client.get(aPath({ name: 'hot', cluster: 'root' })));
    stop.abort();
    await watch;
    return {
      figures: [
        { name: `${name} p50`, value: percentile(delaysMs, 0.5), unit: 'ms' },
        { name: `${name} p99`, value: percentile(delaysMs, 0.99), unit: 'ms', limit: { kind: 'at most', value: p99MsMax } },
      ],
      checks: [
        check('every change of the others is seen', delaysMs.length === sentAt.size, `${delaysMs.length} of ${sentAt.size}`),
        check('the last state of the one that is updated is there', last === hot, `${last} of ${hot}`),
      ],
    };
  } finally {
    client.close();
    await shard.close();
  }
}

function put(shard: ShardStandIn, name: string, state: number): void {
  const labels: Record<string, string> = name === 'hot' ? {} : { is: 'other' };
  shard.store.put(type, 'root', { metadata: { name, labels, uid: `uid-${name}` }, spec: { state, text: 'x'.repeat(500) } });
}

function stateOf(object: KubeObject): number {
  return (object['spec'] as { state: number }).state;
}

function sent(name: string, state: number): string {
  return `${name} ${state}`;
}
