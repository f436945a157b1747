/**
 * One question per file. It is asked on running servers, which hold what earlier questions left
 * there. It gives figures, which may miss their limit, and checks, which must hold: a fast server
 * that loses events has no figures.
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
 * What a question needs. `http`: any server of the API, and Go. `push`: a server that accepts
 * pushes. `etcd`: a server whose store is in etcd. A question without needs starts its own servers,
 * or only inspects the measured one.
 */
type Need = 'http' | 'push' | 'etcd';

export type Question = Readonly<{
  name: string;
  family: Family;
  asks: string;
  needs?: readonly Need[];
  /**
   * Asked only with --all, or if --only names it. All other questions together take less than ten
   * minutes.
   */
  isLong?: true;
  /** How often `ask` yields, for the progress bar; by default never. */
  rounds?: (options: BenchOptions) => number;
  /**
   * A question with rounds yields after each of them. The run then asks other questions before the
   * next round.
   */
  ask: (bench: Bench) => Promise<Answer> | AsyncGenerator<void, Answer, void>;
}>;

/** `remarks`: laws that another server broke. */
export type Answer = Readonly<{ figures: readonly Figure[]; checks: readonly Check[]; remarks?: readonly string[] }>;

export type Limit = Readonly<{ kind: 'at most' | 'at least'; value: number }>;

/**
 * `ceiling`: the figure of the bare server. `against`: that of the other server. Both have the same
 * unit.
 */
export type Figure = Readonly<{
  name: string;
  value: number;
  unit: string;
  /** Which direction is faster. A figure with neither this nor a limit is not drawn. */
  better?: 'more' | 'less';
  limit?: Limit;
  ceiling?: number;
  against?: number;
  /** The limit of value / against. */
  ratioLimit?: Limit;
  /** The limit of value / ceiling. */
  ceilingLimit?: Limit;
  /** The value of every round, in the order of asking. */
  rounds?: readonly number[];
  note?: string;
}>;

export type Check = Readonly<{ law: string; holds: boolean; detail: string }>;

export type Span = Readonly<{ fromMs: number; toMs: number }>;

export type Bench = Readonly<{
  server: StrataProcess;
  target: Target;
  /**
   * Starts another server on the store of the measured one; undefined if that store is not in etcd.
   */
  startAnother: (() => Promise<StrataProcess>) | undefined;
  bare: BareProcess;
  load: LoadProcess;
  /** A second load generator, for jobs that run beside another. */
  secondLoad: LoadProcess;
  loop: LoopSampler;
  /** When each question was asked, by its name: one span for each round. */
  spans: ReadonlyMap<string, readonly Span[]>;
  /** A folder for files of this run only. */
  folder: string;
  options: BenchOptions;
  progress: Progress;
  /** Undefined if Go is not installed, or if no question over HTTP is asked. */
  http: HttpBench | undefined;
}>;

/** What questions over HTTP need. All targets hold the same objects. */
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

/**
 * A limit that this run could test. `of`: what the value is divided by: the other server's figure
 * or the ceiling; '' for the value itself.
 */
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

/** Undefined if a figure only explains another. */
export function directionOf({ better, limit }: Figure): 'more' | 'less' | undefined {
  return better ?? (limit && (limit.kind === 'at least' ? 'more' : 'less'));
}

function keeps(value: number, limit: Limit): boolean {
  return limit.kind === 'at most' ? value <= limit.value : value >= limit.value;
}
