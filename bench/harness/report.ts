/** The report of a run, as a table for people. The JSON has everything in it as well. */
import type { Machine } from './machine.js';
import type { Steadiness } from './steadiness.js';
import { misses, testedLimits, type Answer, type Family, type Figure } from './question.js';

export type Asked = Answer & Readonly<{ name: string; family: Family; asks: string; elapsedMs: number; serverProcessorMs: number }>;

export type Report = Readonly<{
  startedAt: string;
  command: string;
  server: string;
  /** The name of the other server; undefined if there is none. */
  against: string | undefined;
  /** The client of the questions over HTTP; undefined if none was asked. */
  client: string | undefined;
  elapsedMs: number;
  machine: Machine & Readonly<{ steadiness: Steadiness }>;
  options: Readonly<Record<string, unknown>>;
  questions: readonly Asked[];
  holds: boolean;
  limitsMissed: number;
}>;

const msPerMinute = 60_000;

export function formatReport(report: Report): string {
  const broken = report.questions.flatMap(({ name, checks }) =>
    checks.filter(({ holds }) => !holds).map(({ law, detail }) => `  BROKEN ${name}: ${law}${detail === '' ? '' : ` (${detail})`}`),
  );
  const held = report.questions.reduce((sum, { checks }) => sum + checks.length, 0) - broken.length;
  return [
    '',
    ...surroundingsOf(report).map(([name, value]) => `${name.padEnd(9)}${value}`),
    '',
    formatTable(tableHeader(report), tableRows(report)),
    '',
    `server's processor time: ${report.questions.map(({ name, serverProcessorMs }) => `${name} ${formatNumber(serverProcessorMs / 1_000)} s`).join(', ')}`,
    ...broken,
    ...report.questions.flatMap(({ name, remarks = [] }) => remarks.map((remark) => `  remark ${name}: ${remark}`)),
    `${held} checks held, ${broken.length} broken; ${report.limitsMissed} limits missed`,
    '',
  ].join('\n');
}

/** The run, server, machine and versions that the figures belong to. */
export function surroundingsOf(report: Report): readonly (readonly [name: string, value: string])[] {
  const { machine, against, client } = report;
  const { steadiness } = machine;
  return [
    ['run', `${report.startedAt}, ${(report.elapsedMs / msPerMinute).toFixed(1)} minutes, ${report.command}`],
    ['server', against === undefined ? report.server : `${report.server}; against ${against}`],
    [
      'machine',
      `${machine.processor}, ${machine.cores} cores, ${machine.memoryGib} GiB, Linux ${machine.kernel}, load before ${machine.loadBefore.toFixed(1)}`,
    ],
    [
      'steady',
      `a fixed piece of work took ${formatNumber(steadiness.p10Ms)} to ${formatNumber(steadiness.p90Ms)} ms of processor time (10th and 90th percentile of ${steadiness.samples})`,
    ],
    ['versions', `Node ${machine.node}, SQLite ${machine.sqlite}${client === undefined ? '' : `, ${client}`}`],
    [
      'options',
      Object.entries(report.options)
        .map(([name, value]) => `${name}=${String(value)}`)
        .join(' '),
    ],
  ];
}

export function tableHeader({ against }: Report): readonly string[] {
  return ['question', 'figure', 'value', ...(against === undefined ? [] : [against, 'ratio']), 'limit', '', 'ceiling', 'note'];
}

export function tableRows({ questions, against }: Report): readonly (readonly string[])[] {
  return questions.flatMap(({ name, figures }) => figures.map((figure) => [name, ...cells(figure, against !== undefined)]));
}

function cells(figure: Figure, hasOther: boolean): readonly string[] {
  const { name, value, unit, better, against, ceiling, note = '' } = figure;
  const limits = testedLimits(figure).map(formatLimit);
  const ratio = against === undefined || better === undefined ? '' : formatRatio(value / against);
  return [
    name,
    `${formatNumber(value)} ${unit}`,
    ...(hasOther ? [against === undefined ? '' : formatNumber(against), ratio] : []),
    limits.join(', '),
    limits.length === 0 ? '' : misses(figure) ? 'MISSED' : 'ok',
    ceiling === undefined ? '' : formatNumber(ceiling),
    note,
  ];
}

export function formatLimit({ limit: { kind, value }, of }: ReturnType<typeof testedLimits>[number]): string {
  const unit = { '': '', other: ' ×', ceiling: ' × ceiling' }[of];
  const shown = value < 1 && Number.isInteger(1 / value) ? `1/${1 / value}` : value.toLocaleString('en');
  return `${kind === 'at most' ? '≤' : '≥'} ${shown}${unit}`;
}

/** Small ratios are shown as 1/n, so that a hundredth is not shown as 0.01. */
function formatRatio(ratio: number): string {
  return ratio < 0.1 ? `1/${formatNumber(1 / ratio)}` : `${formatNumber(ratio)} ×`;
}

export function formatNumber(value: number): string {
  if (Number.isNaN(value)) return 'unknown';
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
  return value.toLocaleString('en', { maximumFractionDigits: digits, minimumFractionDigits: digits });
}

export function formatShare(share: number): string {
  return `${(share * 100).toFixed(0)} %`;
}

export function formatTable(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = header.map((title, column) => Math.max(title.length, ...rows.map((row) => row[column]?.length ?? 0)));
  const line = (row: readonly string[]): string =>
    row
      .map((cell, column) => cell.padEnd(widths[column]!))
      .join('  ')
      .trimEnd();
  return [line(header), line(widths.map((width) => '─'.repeat(width))), ...rows.map(line)].join('\n');
}
