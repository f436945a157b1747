/**
 * What does an agent cost its shard and its machine when ClusterCachedResources declare many types?
 *
 * A stand-in for a shard, with kcp's limit of streams, declares 1,300 types with one object each.
 * The agent and its cache are separate processes. Measuring begins some seconds after every type is
 * watched.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { AgentProcess } from '../../test/support/agent-process.js';
import { aClusterCachedResource } from '../../test/support/objects.js';
import { residentMiB } from '../../test/support/process-figures.js';
import { ShardStandIn } from '../../test/support/shard-stand-in.js';
import { StrataProcess } from '../../test/support/strata-process.js';
import { until } from '../../test/support/test-server.js';
import { check, type Question } from '../harness/question.js';

const types = 1_300;
const streamsMax = 100;
const syncedMsMax = 60_000;
const restMs = 10_000;
const residentMiBMax = 150;

export const declaredTypes: Question = {
  name: 'declared-types',
  family: 'push',
  asks: 'What does an agent cost its shard and its machine when many types are declared?',
  needs: ['push'],
  isLong: true,
  async ask() {
    const shard = await ShardStandIn.start({ streamsMax });
    await using cache = await StrataProcess.start();
    try {
      shard.store.serve({ group: 'machines.svm.io', version: 'v1', resource: 'instances', kind: 'Instance', identity: '' });
      for (let i = 0; i < types; i += 1) {
        shard.store.put('clustercachedresources.cache.kcp.io', `c${i}`, { metadata: {}, ...aClusterCachedResource(`hash-${i}`) });
        shard.store.put('instances.machines.svm.io', `c${i}`, { metadata: { name: 'one' } });
      }
      await using agent = await AgentProcess.start(cache, { shard: 'amber', kubeconfig: shard.kubeconfig });
      await until(() => shard.openWatches >= types, syncedMsMax);
      await sleep(restMs);
      const requests = shard.requests.length;
      await sleep(restMs);

      const [watches, connections] = [shard.openWatches, shard.openConnections];
      return {
        figures: [
          { name: 'connections', value: connections, unit: '', limit: { kind: 'at most', value: Math.ceil(watches / streamsMax) } },
          { name: 'resident', value: await residentMiB(agent.pid), unit: 'MiB', limit: { kind: 'at most', value: residentMiBMax } },
          { name: 'requests at rest', value: (shard.requests.length - requests) / (restMs / 1_000), unit: '/s' },
        ],
        checks: [check('every type is watched', watches >= types, `${watches} watches`)],
      };
    } finally {
      await shard.close();
    }
  },
};
