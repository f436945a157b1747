/** A stand-in for a shard, and an agent that reads it into a sink in memory. */
import type { ExecutionContext } from 'ava';
import { systemClock } from '../../../src/clock.js';
import type { Log, LogFields } from '../../../src/diagnostics/log.js';
import type { Clock } from '../../../src/domain/ports.js';
import { kcpTypes } from '../../../src/domain/catalogue/catalogue-kcp.js';
import { ShardAgent } from '../../../src/shard/agent.js';
import { loadKubeconfig } from '../../../src/shard/kubeconfig/kubeconfig.js';
import type { KubeAccess } from '../../../src/kube/kube-access.js';
import { shardName } from '../../support/objects.js';
import { ShardStandIn, type StandInOptions } from '../../support/shard-stand-in.js';
import { until } from '../../support/test-server.js';
import { CollectedSlices } from './collected-slices.js';

export type Logged = Readonly<{ level: string; event: string; fields: LogFields }>;

/** `clock` and `random` are for the agent alone. By default its waits have the smallest jitter. */
export type AgentOptions = Readonly<{
  clock?: Clock;
  random?: () => number;
  systemClusters?: readonly string[];
  pushesPaths?: boolean;
  standIn?: StandInOptions;
  prepare?: (shard: ShardStandIn) => void;
}>;

type RigOptions = Omit<AgentOptions, 'prepare' | 'standIn'> & Readonly<{ access?: KubeAccess; logged?: Logged[] }>;

export class AgentRig {
  readonly shard: ShardStandIn;
  readonly slices = new CollectedSlices();
  readonly logged: readonly Logged[];
  readonly agent: ShardAgent;

  constructor(
    shard: ShardStandIn,
    { clock = systemClock, random = () => 0.01, systemClusters = [], pushesPaths = false, access = shard.access, logged = [] }: RigOptions,
  ) {
    this.shard = shard;
    this.logged = logged;
    this.agent = new ShardAgent(
      { access, sink: this.slices, clock, random, log: recording(logged) },
      { shard: shardName('amber'), types: kcpTypes, systemClusters, pushesPaths, userAgent: 'strata/test (push)' },
    );
  }

  /** Resolves once every slice is synced. */
  async synced(): Promise<void> {
    await until(() => this.slices.slices.every((slice) => this.slices.synced.has(slice)));
  }

  events(event: string): readonly Logged[] {
    return this.logged.filter((each) => each.event === event);
  }

  /** The paths of requests for a type, without the query. */
  asked(resource: string): readonly string[] {
    return this.shard.requests.filter((path) => path.includes(`/${resource}`));
  }
}

export async function anAgent(t: ExecutionContext, options: AgentOptions = {}): Promise<AgentRig> {
  const shard = await ShardStandIn.start(options.standIn);
  options.prepare?.(shard);
  return started(t, new AgentRig(shard, options));
}

/** Like `anAgent`, with a kubeconfig for the stand-in. */
export async function anAgentWith(t: ExecutionContext, shard: ShardStandIn, path: string): Promise<AgentRig> {
  const logged: Logged[] = [];
  const parts = { clock: systemClock, log: recording(logged), environment: process.env };
  const access = await loadKubeconfig({ path, context: undefined, allowInsecure: false }, parts);
  return started(t, new AgentRig(shard, { access, logged }));
}

function started(t: ExecutionContext, rig: AgentRig): AgentRig {
  t.teardown(async () => {
    await rig.slices.close();
    rig.agent.close();
    await rig.shard.close();
  });
  rig.agent.start();
  return rig;
}

/** The name of a slice. `resource` includes the group: `apiexports.apis.kcp.io`. */
export function sliceOf(resource: string, identity = ''): string {
  return `amber|${resource}:${identity}`;
}

export function recording(logged: Logged[], context: LogFields = {}): Log {
  const at =
    (level: string) =>
    (event: string, fields: LogFields = {}): void =>
      void logged.push({ level, event, fields: { ...context, ...fields } });
  return {
    debug: at('debug'),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
    child: (fields) => recording(logged, { ...context, ...fields }),
  };
}
