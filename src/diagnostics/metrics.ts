/**
 * Counts the metrics of metric-table.ts, and renders them for Prometheus. Amounts are the first
 * parameter, so that one call can count a batch.
 */
import { collectDefaultMetrics, Counter as PromCounter, Gauge as PromGauge, Histogram as PromHistogram, Registry } from 'prom-client';
import { metricTable, type MetricDeclaration, type MetricTable } from './metric-table.js';

type Labels<Label extends string> = [Label] extends [never] ? [] : [labels: Readonly<Record<Label, string>>];

export interface Counter<Label extends string = never> {
  add(amount: number, ...labels: Labels<Label>): void;
  /** The sum over all labels, including those that were forgotten. */
  total(): number;
  /** Stops rendering the series of these labels. If the series returns, it begins at zero. */
  forget(...labels: Labels<Label>): void;
}

export interface Gauge<Label extends string = never> {
  set(value: number, ...labels: Labels<Label>): void;
  /** A negative amount lowers the value. */
  add(amount: number, ...labels: Labels<Label>): void;
  /** Removes every value, because labels may be outdated. */
  reset(): void;
}

export interface Histogram<Label extends string = never> {
  observe(value: number, ...labels: Labels<Label>): void;
  /**
   * Starts a measurement, in seconds and finer than a Clock. Calling the returned function ends the
   * measurement and records it.
   */
  time(): (...labels: Labels<Label>) => void;
}

type Instrument<D extends MetricDeclaration> = D['kind'] extends 'counter'
  ? Counter<D['labels'][number]>
  : D['kind'] extends 'gauge'
    ? Gauge<D['labels'][number]>
    : Histogram<D['labels'][number]>;

export type Metrics = MetricsOf<typeof metricTable>;

export type MetricsOf<Table extends MetricTable> = InstrumentsOf<Table> & RenderedMetrics;

export type InstrumentsOf<Table extends MetricTable> = { readonly [Name in keyof Table]: Instrument<Table[Name]> };

export interface RenderedMetrics {
  /** Adds the metrics of another table to the output. */
  also<Table extends MetricTable>(table: Table): InstrumentsOf<Table>;
  /**
   * Calls `collect` before each rendering. For values that are cheaper to read on demand than to
   * track.
   */
  beforeRender(collect: () => void | Promise<void>): void;
  render(): Promise<string>;
  readonly contentType: string;
}

type MetricsOptions = Readonly<{ processMetrics: boolean }>;

export function createMetrics(options: MetricsOptions): Metrics {
  return createMetricsOf(metricTable, options);
}

/**
 * `processMetrics` adds memory, CPU and garbage collection. It is off when many servers share one
 * process, because these metrics cannot be removed again.
 */
export function createMetricsOf<Table extends MetricTable>(table: Table, { processMetrics }: MetricsOptions): MetricsOf<Table> {
  const registry = new Registry();
  if (processMetrics) collectDefaultMetrics({ register: registry });
  const collectors: (() => void | Promise<void>)[] = [];

  return Object.freeze({
    ...createInstruments(registry, table),
    also: <More extends MetricTable>(more: More): InstrumentsOf<More> => createInstruments(registry, more),
    beforeRender: (collect: () => void | Promise<void>): void => void collectors.push(collect),
    render: async (): Promise<string> => {
      for (const collect of collectors) await collect();
      return registry.metrics();
    },
    contentType: registry.contentType,
  });
}

function createInstruments<Table extends MetricTable>(registry: Registry, table: Table): InstrumentsOf<Table> {
  const instruments = Object.entries(table).map(([key, declaration]) => [key, createInstrument(registry, declaration)]);
  // The table declares exactly these instruments. TypeScript cannot follow a mapped type through
  // Object.entries.
  return Object.fromEntries(instruments) as unknown as InstrumentsOf<Table>;
}

/** A metric without labels exists from the start, at zero, because a rate needs a first value. */
function createInstrument(
  registry: Registry,
  { kind, name, help, labels, buckets }: MetricDeclaration,
): Partial<Counter & Gauge & Histogram> {
  const common = { name, help, labelNames: labels, registers: [registry] };
  switch (kind) {
    case 'counter': {
      const counter = new PromCounter(common);
      let total = 0;
      return {
        add: (amount: number, values: Record<string, string> = {}) => {
          total += amount;
          counter.inc(values, amount);
        },
        total: () => total,
        forget: (values: Record<string, string> = {}) => counter.remove(values),
      };
    }
    case 'gauge': {
      const gauge = new PromGauge(common);
      return {
        set: (value: number, values: Record<string, string> = {}) => gauge.set(values, value),
        add: (amount: number, values: Record<string, string> = {}) => gauge.inc(values, amount),
        reset: () => gauge.reset(),
      };
    }
    case 'histogram': {
      const histogram = new PromHistogram({ ...common, buckets: [...(buckets ?? [])] });
      return {
        observe: (value: number, values: Record<string, string> = {}) => histogram.observe(values, value),
        time: () => {
          const end = histogram.startTimer();
          return (values: Record<string, string> = {}) => void end(values);
        },
      };
    }
  }
}
