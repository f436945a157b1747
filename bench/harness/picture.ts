/**
 * One picture for each family of questions: a group of bars for each figure that has a direction, ours above the other server's and the ceiling's.
 * Figures have different units, so each group has a scale of its own, and every bar its value. The colours are readable on white and on black.
 */
import type { Family, Figure } from './question.js';
import { formatNumber, type Report } from './report.js';

const width = 860;
const labelWidth = 380;
const valueWidth = 120;
const barHeight = 14;
const barGap = 2;
const groupGap = 12;
const top = 56;
const barWidthMax = width - labelWidth - valueWidth;

type Bar = Readonly<{ of: string; value: number; color: string }>;

const colors = { measured: '#2f81f7', against: '#d29922', bare: '#8b949e' } as const;

/** Undefined when there is nothing to draw. */
export function drawFamily(report: Report, family: Family): string | undefined {
  const groups = report.questions
    .filter((asked) => asked.family === family)
    .flatMap(({ figures }) => figures)
    .filter(({ better }) => better !== undefined)
    .map((figure) => ({ figure, bars: barsOf(figure, report.against ?? '') }));
  if (groups.length === 0) return undefined;
  let y = top;
  const drawn = groups.map(({ figure, bars }) => {
    const text = drawGroup(figure, bars, y);
    y += bars.length * (barHeight + barGap) + groupGap;
    return text;
  });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${y}" width="${width}" height="${y}" role="img" aria-label="Figures of the family ${family}">`,
    `<style>text{font:12px system-ui,sans-serif;fill:#57606a}.name{font-size:15px;font-weight:600}@media(prefers-color-scheme:dark){text{fill:#b1bac4}}</style>`,
    `<text class="name" x="0" y="18">${escape(family)}</text>`,
    drawLegend(groups.flatMap(({ bars }) => bars)),
    ...drawn,
    '</svg>',
    '',
  ].join('\n');
}

function barsOf({ value, against, ceiling }: Figure, other: string): readonly Bar[] {
  return [
    { of: 'Strata', value, color: colors.measured },
    ...(against === undefined ? [] : [{ of: other, value: against, color: colors.against }]),
    ...(ceiling === undefined ? [] : [{ of: 'bare server', value: ceiling, color: colors.bare }]),
  ];
}

function drawLegend(bars: readonly Bar[]): string {
  const named = new Map(bars.map(({ of, color }) => [of, color]));
  const parts = [...named].map(
    ([of, color], at) =>
      `<rect x="${at * 150}" y="29" width="12" height="12" rx="2" fill="${color}"/><text x="${at * 150 + 18}" y="39">${escape(of)}</text>`,
  );
  return [...parts, `<text x="${width}" y="39" text-anchor="end">▲ longer is faster · ▼ shorter is faster</text>`].join('');
}

function drawGroup({ name, unit, better }: Figure, bars: readonly Bar[], y: number): string {
  const largest = Math.max(...bars.map(({ value }) => value));
  const middle = y + (bars.length * (barHeight + barGap)) / 2 + 4;
  const label = `<text x="${labelWidth - 10}" y="${middle}" text-anchor="end">${escape(`${name} ${better === 'more' ? '▲' : '▼'}`)}</text>`;
  const drawn = bars.map(({ value, color }, at) => {
    const barY = y + at * (barHeight + barGap);
    const length = largest > 0 ? Math.max(1, (value / largest) * barWidthMax) : 1;
    return (
      `<rect x="${labelWidth}" y="${barY}" width="${length.toFixed(1)}" height="${barHeight}" rx="2" fill="${color}"/>` +
      `<text x="${(labelWidth + length + 6).toFixed(1)}" y="${barY + barHeight - 3}">${escape(`${formatNumber(value)} ${unit}`)}</text>`
    );
  });
  return [label, ...drawn].join('');
}

function escape(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}
