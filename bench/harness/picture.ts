/**
 * One picture for each family of questions. Each figure with a direction has a group of bars: the
 * measured server's above the other server's and the ceiling's. Figures have different units, so
 * each group has its own scale, and each bar shows its value. The colours are readable on white and
 * on black.
 */
import { directionOf, type Family, type Figure } from './question.js';
import { formatNumber, type Report } from './report.js';

const width = 860;
const labelWidth = 370;
const valueWidth = 120;
const barHeight = 12;
const barGap = 2;
const groupGap = 9;
const headingHeight = 30;
const legendWidth = 150;
const top = 50;
const barWidthMax = width - labelWidth - valueWidth;

type Bar = Readonly<{ of: string; value: number; color: string }>;

const colors = { measured: '#2f81f7', against: '#d29922', bare: '#8b949e' } as const;

/** Undefined if there is nothing to draw. */
export function drawFamily(report: Report, family: Family): string | undefined {
  const drawn: string[] = [];
  const bars: Bar[] = [];
  let y = top;
  for (const { asks, figures } of report.questions.filter((asked) => asked.family === family)) {
    const comparable = figures.filter((figure) => directionOf(figure) !== undefined);
    if (comparable.length === 0) continue;
    drawn.push(`<text class="asks" x="0" y="${y + headingHeight - 12}">${escape(asks)}</text>`);
    y += headingHeight;
    for (const figure of comparable) {
      const ofFigure = barsOf(figure, report.against ?? '');
      drawn.push(drawGroup(figure, ofFigure, y));
      bars.push(...ofFigure);
      y += ofFigure.length * (barHeight + barGap) + groupGap;
    }
  }
  if (drawn.length === 0) return undefined;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${y}" width="${width}" height="${y}" role="img" aria-label="Figures of the family ${family}">`,
    `<style>text{font:12px system-ui,sans-serif;fill:#6e7781}.name{font-size:15px;font-weight:600}.asks{font-weight:600}</style>`,
    `<text class="name" x="0" y="16">${escape(family)}</text>`,
    drawLegend(bars),
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
      `<rect x="${at * legendWidth}" y="27" width="12" height="12" rx="2" fill="${color}"/><text x="${at * legendWidth + 18}" y="37">${escape(of)}</text>`,
  );
  return [...parts, `<text x="${width}" y="37" text-anchor="end">▲ more is faster · ▼ less is faster</text>`].join('');
}

function drawGroup(figure: Figure, bars: readonly Bar[], y: number): string {
  const { name, unit } = figure;
  const largest = Math.max(...bars.map(({ value }) => value));
  const middle = y + (bars.length * (barHeight + barGap)) / 2 + 3;
  const label = `<text x="${labelWidth - 10}" y="${middle}" text-anchor="end">${escape(`${name} ${directionOf(figure) === 'more' ? '▲' : '▼'}`)}</text>`;
  const drawn = bars.map(({ value, color }, at) => {
    const barY = y + at * (barHeight + barGap);
    const length = largest > 0 ? Math.max(1, (value / largest) * barWidthMax) : 1;
    return (
      `<rect x="${labelWidth}" y="${barY}" width="${length.toFixed(1)}" height="${barHeight}" rx="2" fill="${color}"/>` +
      `<text x="${(labelWidth + length + 6).toFixed(1)}" y="${barY + barHeight - 2}">${escape(`${formatNumber(value)} ${unit}`)}</text>`
    );
  });
  return [label, ...drawn].join('');
}

function escape(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}
