/** Counts what metric-table.ts declares, and renders it for Prometheus. Amounts come first, so that a batch is counted with one call. */
import { collectDefaultMetrics, Counter as PromCounter, Gauge as PromGauge, Histogram as PromHistogram, Registry } from 'prom-client';
import { metricTable, type MetricDeclaration, type MetricTable } from './metric-table.js';

type Labels<Label extends string> = [Label] extends [never] ? [] : [labels: Readonly<Record<Label, string>>];

export interface Counter<Label extends string = never> {
  add(amount: number, ...labels: Labels<Label>): void;
  /** Of all labels together, with those that were forgotten. */
  total(): number;
  /** The series of these labels is no longer rendered, and begins at zero if it comes again. */
  forget(...labels: Labels<Label>): void;
}

export interface Gauge<Label extends string = never> {
  set(value: number, ...labels: Labels<Label>): void;
  /** Up, or down with a negative amount. */
  add(amount: number, ...labels: Labels<Label>): void;
  /** Forgets every value, for labels that may be gone. */
  reset(): void;
}

export interface Histogram<Label extends string = never> {
  observe(value: number, ...labels: Labels<Label>): void;
  /** Begins to measure, in seconds and finer than a Clock; what it returns ends and observes it. */
  time(): (...labels: Labels<Label>) => void;
}

type Instrument<D extends MetricDeclaration> = D['kind'] extends 'counter'
  ? Counter<D['labels'][number]>
  : D['kind'] extends 'gauge'
    ? Gauge<D['labels'][number]>
    : Histogram<D['labels'][number]>;

/** Those of a server. */
export type Metrics = MetricsOf<typeof metricTable>;

export type MetricsOf<Table extends MetricTable> = InstrumentsOf<Table> & RenderedMetrics;

export type InstrumentsOf<Table extends MetricTable> = { readonly [Name in keyof Table]: Instrument<Table[Name]> };

export interface RenderedMetrics {
  /** Has what another table declares rendered as well. */
  also<Table extends MetricTable>(table: Table): InstrumentsOf<Table>;
  /** Called before each rendering, for values that are cheaper to ask for than to follow. */
  beforeRender(collect: () => void | Promise<void>): void;
  render(): Promise<string>;
  readonly contentType: string;
}

type MetricsOptions = Readonly<{ processMetrics: boolean }>;

export function createMetrics(options: MetricsOptions): Metrics {
  return createMetricsOf(metricTable, options);
}

/** `processMetrics` adds memory, CPU and garbage collection; off where many servers share one process, because they cannot be removed again. */
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
  // The table declares exactly what was built from it; TypeScript cannot follow a mapped type through Object.entries.
  return Object.fromEntries(instruments) as unknown as InstrumentsOf<Table>;
}

/** A metric without labels exists from the start, at zero, so that a rate has something to begin with. */
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
