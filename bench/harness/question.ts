/**
 * One question per file. It is asked on running servers that hold what earlier questions left there, and gives figures
 * (which may miss their limit) and checks (which must hold: a fast server that loses events has no figures).
 */
import type { StrataProcess } from '../../test/support/strata-process.js';
import type { BareProcess } from './bare-process.js';
import type { CacheTarget } from './cache-target.js';
import type { Target } from './client.js';
import type { GoClient } from './go-client.js';
import type { LoadProcess } from './load-process.js';
import type { LoopSampler } from './loop-sampler.js';
import type { BenchOptions } from './options.js';
import type { Progress } from './progress.js';

export const families = ['requests', 'lists', 'watches', 'push', 'scale', 'tiers', 'process'] as const;
export type Family = (typeof families)[number];

/**
 * What it takes to ask it: `http` any server of the API and Go, `push` a server that accepts pushes, `etcd` one whose store is in etcd. Without any of
 * them it starts servers of its own, or only looks at the measured one.
 */
type Need = 'http' | 'push' | 'etcd';

export type Question = Readonly<{
  name: string;
  family: Family;
  asks: string;
  needs?: readonly Need[];
  /** Only with --all, or named by --only: all others together take less than ten minutes. */
  isLong?: true;
  /** How often it yields, for the progress bar; without it never. */
  rounds?: (options: BenchOptions) => number;
  /** One that is asked in rounds yields after each of them, and other questions are asked before the next. */
  ask: (bench: Bench) => Promise<Answer> | AsyncGenerator<void, Answer, void>;
}>;

/** `remarks`: laws that another server broke. */
export type Answer = Readonly<{ figures: readonly Figure[]; checks: readonly Check[]; remarks?: readonly string[] }>;

export type Limit = Readonly<{ kind: 'at most' | 'at least'; value: number }>;

/** `ceiling` is the figure of the bare server, `against` that of the other server, both in the same unit. */
export type Figure = Readonly<{
  name: string;
  value: number;
  unit: string;
  /** Which way is faster; a figure without it and without a limit is not drawn. */
  better?: 'more' | 'less';
  limit?: Limit;
  ceiling?: number;
  against?: number;
  /** For value / against. */
  ratioLimit?: Limit;
  /** For value / ceiling. */
  ceilingLimit?: Limit;
  /** Every round, in the order of asking. */
  rounds?: readonly number[];
  note?: string;
}>;

export type Check = Readonly<{ law: string; holds: boolean; detail: string }>;

export type Span = Readonly<{ fromMs: number; toMs: number }>;

export type Bench = Readonly<{
  server: StrataProcess;
  target: Target;
  /** Starts one more server of the store of the measured one; undefined where that is not in etcd. */
  startAnother: (() => Promise<StrataProcess>) | undefined;
  bare: BareProcess;
  load: LoadProcess;
  /** A second one, for jobs that run while another does. */
  secondLoad: LoadProcess;
  loop: LoopSampler;
  /** When each question was asked, by its name: a span for each round. */
  spans: ReadonlyMap<string, readonly Span[]>;
  /** For files that belong to this run alone. */
  folder: string;
  options: BenchOptions;
  progress: Progress;
  /** Undefined where Go is not installed, or no question over HTTP is asked. */
  http: HttpBench | undefined;
}>;

/** What questions over HTTP need; all targets hold the same objects. */
export type HttpBench = Readonly<{ client: GoClient; targets: readonly CacheTarget[] }>;

export function check(law: string, holds: boolean, detail = ''): Check {
  return { law, holds, detail };
}

export function atLeast(value: number): Limit {
  return { kind: 'at least', value };
}

export function atMost(value: number): Limit {
  return { kind: 'at most', value };
}

/** A limit that this run could test: `of` says of what, nothing for the value itself. */
type Tested = Readonly<{ limit: Limit; of: '' | 'other' | 'ceiling'; isKept: boolean }>;

export function testedLimits({ value, limit, against, ratioLimit, ceiling, ceilingLimit }: Figure): readonly Tested[] {
  const test = (of: Tested['of'], measured: number | undefined, tested: Limit | undefined): readonly Tested[] =>
    measured === undefined || tested === undefined ? [] : [{ limit: tested, of, isKept: keeps(measured, tested) }];
  return [
    ...test('', value, limit),
    ...test('other', against && value / against, ratioLimit),
    ...test('ceiling', ceiling && value / ceiling, ceilingLimit),
  ];
}

export function misses(figure: Figure): boolean {
  return testedLimits(figure).some(({ isKept }) => !isKept);
}

/** Undefined where a figure only explains another. */
export function directionOf({ better, limit }: Figure): 'more' | 'less' | undefined {
  return better ?? (limit && (limit.kind === 'at least' ? 'more' : 'less'));
}

function keeps(value: number, limit: Limit): boolean {
  return limit.kind === 'at most' ? value <= limit.value : value >= limit.value;
}
