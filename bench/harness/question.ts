/**
 * One question per file. It is asked on a running server that holds what earlier questions left there, and gives figures
 * (which may miss their limit) and checks (which must hold: a fast server that loses events has no figures).
 */
import type { StrataProcess } from '../../test/support/strata-process.js';
import type { BareProcess } from './bare-process.js';
import type { Target } from './client.js';
import type { LoadProcess } from './load-process.js';
import type { LoopSampler } from './loop-sampler.js';

export type Question = Readonly<{
  name: string;
  asks: string;
  /** It pushes objects of its own over a websocket: it needs nothing from another question, only a server that accepts pushes. */
  pushes?: true;
  ask: (bench: Bench) => Promise<Answer>;
}>;

export type Answer = Readonly<{ figures: readonly Figure[]; checks: readonly Check[] }>;

export type Limit = Readonly<{ kind: 'at most' | 'at least'; value: number }>;

/** `ceiling` is the figure of the bare server, in the same unit. */
export type Figure = Readonly<{ name: string; value: number; unit: string; limit?: Limit; ceiling?: number; note?: string }>;

export type Check = Readonly<{ law: string; holds: boolean; detail: string }>;

export type Bench = Readonly<{
  server: StrataProcess;
  target: Target;
  bare: BareProcess;
  load: LoadProcess;
  /** A second one, for jobs that run while another does. */
  secondLoad: LoadProcess;
  loop: LoopSampler;
  /** When each question was asked, by its name. */
  spans: ReadonlyMap<string, Readonly<{ fromMs: number; toMs: number }>>;
  /** For files that belong to this run alone. */
  folder: string;
  options: BenchOptions;
  /** What `create` left in the server, by index of the object. */
  acknowledged: { resourceVersions: readonly string[] };
}>;

export type BenchOptions = Readonly<{
  objects: number;
  rounds: number;
  writers: number;
  informers: number;
  watchers: number;
  updatesMax: number;
  updateMsMax: number;
  settleMs: number;
}>;

export function check(law: string, holds: boolean, detail = ''): Check {
  return { law, holds, detail };
}

export function misses({ value, limit }: Figure): boolean {
  if (limit === undefined) return false;
  return !(limit.kind === 'at most' ? value <= limit.value : value >= limit.value);
}
