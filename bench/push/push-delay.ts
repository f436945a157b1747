/**
 * How long does a change take from the shard's API to a watcher of everything, without other load?
 *
 *   stand-in for a shard ─watch─▶ strata push ─websocket─▶ measured server ─watch─▶ load process
 *   ▲ sent                                                                          seen ▲
 *
 * The four processes run on one machine. The stand-in is in this process, which does nothing else
 * meanwhile. Changes are sent one at a time, with a pause longer than the time for which changes
 * are collected. Limit: 5 ms at the median.
 */
import type { KubeObject } from '../../test/support/kube-client.js';
import { AgentProcess } from '../../test/support/agent-process.js';
import { ShardStandIn } from '../../test/support/shard-stand-in.js';
import { delaysOf, type Change, type ChangeDelays } from '../harness/change-delays.js';
import { percentile } from '../harness/statistics.js';
import { exportsType, pushedMixedObject } from '../harness/mixed-objects.js';
import { readStatus, untilHolds } from '../harness/push-target.js';
import { check, type Question } from '../harness/question.js';

const { group, resource } = exportsType;
const shard = 'delayed';
const objects = 50;
const changes = 400;
const medianMsMax = 5;

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
      const measured = async (): Promise<ChangeDelays> => {
        await untilHolds(server, shard, objects);
        const { resourceVersion } = (await readStatus(server)).cache;
        return await delaysOf(load, { target, shard, resourceVersion }, changesOf(standIn));
      };
      const { delaysMs, seen, isWhole } = await Promise.race([measured(), failed]);
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
        checks: [check('every change is seen once, in order', isWhole, `${seen} of ${changes}`)],
      };
    } finally {
      await standIn.close();
    }
  },
};

function* changesOf(standIn: ShardStandIn): Generator<Change> {
  for (let count = 0; count < changes; count++) {
    const [index, round] = [count % objects, 1 + Math.floor(count / objects)];
    yield { index, round, send: () => put(standIn, index, round) };
  }
}

/** The stand-in adds what an API server would add, and the agent makes a replica of the object. */
function put(standIn: ShardStandIn, index: number, round: number): void {
  const { cluster, text } = pushedMixedObject(shard, index);
  const object = JSON.parse(text(round)) as KubeObject;
  const { 'kcp.io/shard': _, ...annotations } = object.metadata.annotations ?? {};
  standIn.store.put(`${resource}.${group}`, cluster, { ...object, metadata: { ...object.metadata, annotations } });
}
