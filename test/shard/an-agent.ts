/** A stand-in for a shard, and an agent that reads it into memory. */
import type { ExecutionContext } from 'ava';
import { systemClock } from '../../src/clock.js';
import type { Log, LogFields } from '../../src/diagnostics/log.js';
import type { Clock } from '../../src/domain/ports.js';
import { ShardAgent } from '../../src/shard/agent.js';
import { shardName } from '../support/objects.js';
import { ShardStandIn } from '../support/shard-stand-in.js';
import { until } from '../support/test-server.js';
import { CollectedSlices } from './collected-slices.js';

export type Logged = Readonly<{ level: string; event: string; fields: LogFields }>;

/** `clock` is for the agent alone. Waits are as short as jitter can make them. */
export type AgentOptions = Readonly<{
  clock?: Clock;
  random?: () => number;
  systemClusters?: readonly string[];
  prepare?: (shard: ShardStandIn) => void;
}>;

export class AgentRig {
  readonly shard: ShardStandIn;
  readonly slices = new CollectedSlices();
  readonly logged: Logged[] = [];
  readonly agent: ShardAgent;

  constructor(shard: ShardStandIn, { clock = systemClock, random = () => 0.01, systemClusters = [] }: AgentOptions) {
    this.shard = shard;
    this.agent = new ShardAgent(
      { access: shard.access, sink: this.slices, clock, random, log: recording(this.logged, {}) },
      { shard: shardName('amber'), systemClusters },
    );
  }

  /** Once every slice is synced. */
  async synced(): Promise<void> {
    await until(() => this.slices.slices.every((slice) => this.slices.synced.has(slice)));
  }

  events(event: string): readonly Logged[] {
    return this.logged.filter((each) => each.event === event);
  }

  /** The requests for a type, without the query. */
  asked(resource: string): readonly string[] {
    return this.shard.requests.filter((path) => path.includes(`/${resource}`));
  }
}

export async function anAgent(t: ExecutionContext, options: AgentOptions = {}): Promise<AgentRig> {
  const shard = await ShardStandIn.start();
  options.prepare?.(shard);
  const rig = new AgentRig(shard, options);
  t.teardown(async () => {
    await rig.slices.close();
    rig.agent.close();
    await shard.close();
  });
  rig.agent.start();
  return rig;
}

/** The slice of a type: `apiexports.apis.kcp.io`, or with its identity. */
export function sliceOf(resource: string, identity = ''): string {
  return `amber|${resource}:${identity}`;
}

function recording(logged: Logged[], context: LogFields): Log {
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
