/**
 * Checks that the documentation names everything that an operator meets, and nothing else: reasons
 * of refusals, options, metrics.
 *
 * A reason is mentioned in a row of a table with its HTTP code (`| Expired | 410 |`). An option is
 * mentioned by its key in the file (`commit.queueBytesMax`) and its variable (`STRATA_…`), a metric
 * by its name (`strata_…`).
 */
export type Documented = Readonly<{
  reasons: Readonly<Record<string, { http: number }>>;
  optionKeys: readonly string[];
  variables: readonly string[];
  metrics: readonly string[];
}>;

export function docsViolations(documented: Documented, text: string): readonly string[] {
  const { reasons, optionKeys, variables, metrics } = documented;
  const rows = [...text.matchAll(/^\|\s*`?([A-Z][A-Za-z]+)`?\s*\|\s*`?(\d{3})`?\s*\|/gm)].map(
    ([, reason = '', http = '']) => `${reason} ${http}`,
  );
  const sections = new Set(optionKeys.map((key) => key.split('.')[0]));
  const keys = [...text.matchAll(/`(\w+)\.\w+`/g)].filter(([, section]) => sections.has(section)).map(([found]) => found.slice(1, -1));

  return [
    ...compare(
      'reason',
      Object.entries(reasons).map(([reason, { http }]) => `${reason} ${http}`),
      rows,
    ),
    ...compare('option', optionKeys, keys),
    ...compare('variable', variables, wordsOf(text, /(?<![\w$])STRATA_[A-Z0-9_]*[A-Z0-9]/g)),
    ...compare(
      'metric',
      metrics,
      wordsOf(text, /(?<![\w/.-])strata_[a-z0-9_]*[a-z0-9]/g).map((name) => name.replace(/_(?:bucket|sum|count)$/, '')),
    ),
  ];
}

/**
 * Every key, variable and metric name in the tables that a module exports. They are found by their
 * shape, so that no module depends on this test.
 */
export function tablesIn(exported: Readonly<Record<string, unknown>>): readonly Readonly<Record<string, unknown>>[] {
  return Object.values(exported)
    .flatMap((table) => (isRecord(table) ? [table, ...Object.values(table)] : []))
    .filter(isRecord);
}

function compare(what: string, declared: readonly string[], mentioned: readonly string[]): readonly string[] {
  const known = new Set(declared);
  const received = new Set(mentioned);
  return [
    ...[...known].filter((name) => !received.has(name)).map((name) => `the ${what} ${name} is not documented`),
    ...[...received].filter((name) => !known.has(name)).map((name) => `the documented ${what} ${name} does not exist`),
  ];
}

function wordsOf(text: string, pattern: RegExp): readonly string[] {
  return [...text.matchAll(pattern)].map(([word]) => word);
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}
