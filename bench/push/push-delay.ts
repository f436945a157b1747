/**
 * How long does a change take from the shard's API to a watcher of everything, when nothing else happens?
 *
 *   stand-in for a shard ──watch──▶ strata push ──websocket──▶ the measured server ──watch──▶ a load process
 *   ▲ sent                                                                                    seen ▲
 *
 * Four processes on one machine; the stand-in lives in this one, which does nothing else meanwhile. One change at a time, with a pause
 * that is longer than the time for which changes are collected. Median at most 5 ms.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { KubeObject } from '../../test/support/kube-client.js';
import { AgentProcess } from '../../test/support/agent-process.js';
import { ShardStandIn } from '../../test/support/shard-stand-in.js';
import { wallClock } from '../harness/jobs.js';
import { percentile } from '../harness/statistics.js';
import { group, placeOn, resource, textOf, wildcardPath } from '../harness/objects.js';
import { readStatus } from '../harness/push-target.js';
import { check, type Bench, type Question } from '../harness/question.js';

const shard = 'delayed';
const objects = 50;
const changes = 400;
const pauseMs = 20;
const medianMsMax = 5;
const syncedMsMax = 30_000;
const lateMsMax = 5_000;
const pollMs = 50;

export const pushDelay: Question = {
  name: 'push-delay',
  family: 'push',
  asks: "How long does a change take from the shard's API to a watcher of everything, unloaded?",
  needs: ['push'],
  async ask(bench) {
    const { load, server, target } = bench;
    const standIn = await ShardStandIn.start();
    try {
      for (let index = 0; index < objects; index++) put(standIn, index, 0);
      await using agent = await AgentProcess.start(server, { shard, kubeconfig: standIn.kubeconfig });
      const failed = agent.failed();
      failed.catch(() => {});
      await Promise.race([synced(bench), failed]);

      const { resourceVersion } = (await readStatus(bench)).cache;
      const watching = load.begin('witness', {
        target,
        protocol: 'HTTP/1.1',
        watchers: 1,
        path: wildcardPath,
        shard,
        resourceVersion,
        lateMsMax,
      });
      await watching.ready;
      const sentAt = new Map<string, number>();
      for (let count = 0; count < changes; count++) {
        const [index, round] = [count % objects, 1 + Math.floor(count / objects)];
        sentAt.set(`${index}|${round}`, wallClock());
        put(standIn, index, round);
        await Promise.race([sleep(pauseMs), failed]);
      }
      watching.send(changes);
      const { indexes, rounds, seenAt } = await watching.answer;

      const delaysMs = Array.from(indexes, (index, at) => seenAt[at]! - (sentAt.get(`${index}|${rounds[at]}`) ?? Number.NaN));
      const inOrder = [...sentAt.keys()].every((sent, at) => sent === `${indexes[at]}|${rounds[at]}`);
      return {
        figures: [
          {
            name: 'seen after p50',
            value: percentile(delaysMs, 0.5),
            unit: 'ms',
            limit: { kind: 'at most', value: medianMsMax },
            note: `${changes} changes, the latest ${Math.max(...delaysMs).toFixed(1)} ms`,
          },
          { name: 'seen after p99', value: percentile(delaysMs, 0.99), unit: 'ms' },
        ],
        checks: [check('every change is seen once, in order', indexes.length === changes && inOrder, `${indexes.length} of ${changes}`)],
      };
    } finally {
      await standIn.close();
    }
  },
};

/** The stand-in adds what an API server would, and the agent makes a replica of it. */
function put(standIn: ShardStandIn, index: number, round: number): void {
  const place = placeOn(shard, index);
  const object = JSON.parse(textOf(index, place)('', round)) as KubeObject;
  const { 'kcp.io/shard': _, ...annotations } = object.metadata.annotations ?? {};
  standIn.store.put(`${resource}.${group}`, place.cluster, { ...object, metadata: { ...object.metadata, annotations } });
}

async function synced(bench: Bench): Promise<void> {
  const deadline = performance.now() + syncedMsMax;
  for (;;) {
    const { shards } = await readStatus(bench);
    const slice = shards.find((one) => one.shard === shard)?.slices.find((one) => one.group === group && one.resource === resource);
    if (slice?.syncedIn === 'this-term' && slice.objects === objects) return;
    if (performance.now() > deadline) throw new Error(`the shard is not synced: ${JSON.stringify(slice)}`);
    await sleep(pollMs);
  }
}
