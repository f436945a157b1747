/** The run as a table for people. The JSON has everything in it as well. */
import type { Machine } from './machine.js';
import { misses, type Answer, type Figure, type Limit } from './question.js';

export type Asked = Answer & Readonly<{ name: string; asks: string; elapsedMs: number; serverProcessorMs: number }>;

export type Report = Readonly<{
  startedAt: string;
  server: string;
  machine: Machine;
  options: Readonly<Record<string, unknown>>;
  questions: readonly Asked[];
  holds: boolean;
  limitsMissed: number;
}>;

export function formatReport(report: Report): string {
  const { machine } = report;
  const rows = report.questions.flatMap(({ name, figures }) => figures.map((figure) => [name, ...cells(figure)]));
  const broken = report.questions.flatMap(({ name, checks }) =>
    checks.filter(({ holds }) => !holds).map(({ law, detail }) => `  BROKEN ${name}: ${law}${detail === '' ? '' : ` (${detail})`}`),
  );
  const held = report.questions.reduce((sum, { checks }) => sum + checks.length, 0) - broken.length;
  return [
    '',
    `server   ${report.server}`,
    `machine  ${machine.processor}, ${machine.cores} cores, ${machine.memoryGib} GiB, Linux ${machine.kernel}, load before ${machine.loadBefore.toFixed(1)}`,
    `versions Node ${machine.node}, SQLite ${machine.sqlite}`,
    `options  ${Object.entries(report.options)
      .map(([name, value]) => `${name}=${String(value)}`)
      .join(' ')}`,
    '',
    formatTable(['question', 'figure', 'value', 'limit', '', 'ceiling', 'note'], rows),
    '',
    `server's processor time: ${report.questions.map(({ name, serverProcessorMs }) => `${name} ${formatNumber(serverProcessorMs / 1_000)} s`).join(', ')}`,
    ...broken,
    `${held} checks held, ${broken.length} broken; ${report.limitsMissed} limits missed`,
    '',
  ].join('\n');
}

function cells(figure: Figure): readonly string[] {
  const { name, value, unit, limit, ceiling, note = '' } = figure;
  const verdict = limit === undefined ? '' : misses(figure) ? 'MISSED' : 'ok';
  return [
    name,
    `${formatNumber(value)} ${unit}`,
    limit === undefined ? '' : formatLimit(limit),
    verdict,
    ceiling === undefined ? '' : formatNumber(ceiling),
    note,
  ];
}

function formatLimit({ kind, value }: Limit): string {
  return `${kind === 'at most' ? '≤' : '≥'} ${formatNumber(value)}`;
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
