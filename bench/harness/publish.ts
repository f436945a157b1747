/** What a run leaves behind for readers: one picture for each family, and the table in a page. */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { drawFamily } from './picture.js';
import { directionOf, families, misses, testedLimits, type Figure } from './question.js';
import { formatLimit, formatNumber, formatRatio, surroundingsOf, tableHeader, tableRows, type Report } from './report.js';

const beginMark = '<!-- bench: begin -->';
const endMark = '<!-- bench: end -->';
/** Every client in Go speaks it. */
const clientsProtocol = 'HTTP/2';

/** Families without a figure that has a direction get no picture. */
export async function writePictures(report: Report, folder: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  for (const family of families) {
    const picture = drawFamily(report, family);
    if (picture !== undefined) await writeFile(join(folder, `${family}.svg`), picture);
  }
}

/** Puts a text between the marks of the bench in a page. */
export async function writePage(text: string, file: string): Promise<void> {
  const page = await readFile(file, 'utf8');
  const [begin, end] = [page.indexOf(beginMark), page.indexOf(endMark)];
  if (begin === -1 || end < begin) throw new Error(`${file} has no place for the table: ${beginMark} and ${endMark}`);
  await writeFile(file, `${page.slice(0, begin)}${beginMark}\n\n${text}\n\n${page.slice(end)}`);
}

/** The figures for which there is a goal beside the other server, asked as kcp's clients ask. */
export function formatSummary(report: Report): string {
  const found = report.questions.flatMap(({ name, figures }) =>
    figures.filter(hasGoalBesideOther).map((figure) => ({ question: name, figure })),
  );
  const rows = found.map(({ question, figure }) => {
    const { name, value, unit, against = Number.NaN, ceiling } = figure;
    const goal = testedLimits(figure).find(({ of }) => of === 'other');
    return [
      question,
      name.replace(` over ${clientsProtocol}`, ''),
      `${formatNumber(value)} ${unit}`,
      formatNumber(against),
      formatRatio(value / against),
      goal === undefined ? '' : `${formatLimit(goal)}${goal.isKept ? '' : ', missed'}`,
      ceiling === undefined ? '' : formatNumber(ceiling),
    ];
  });
  return [
    ...markdownTable(['question', 'figure', 'Strata', report.against ?? '', 'ratio', 'goal', 'bare server'], rows),
    '',
    ...surroundingsOf(report)
      .filter(([name]) => name !== 'options')
      .map(([name, value]) => `* ${name}: ${value}`),
  ].join('\n');
}

/** Only figures that a reader can compare: those with a direction or a limit. */
export function formatMarkdown(report: Report): string {
  const questions = report.questions.map((asked) => ({
    ...asked,
    figures: asked.figures.filter((figure) => directionOf(figure) !== undefined),
  }));
  return [
    ...surroundingsOf(report).map(([name, value]) => `* ${name}: ${value}`),
    '',
    ...markdownTable(tableHeader(report), tableRows({ ...report, questions })),
    '',
    ...missedGoals(report),
  ].join('\n');
}

/** Another goal than to be as good. */
function hasGoalBesideOther({ name, against, ratioLimit }: Figure): boolean {
  const asked = !name.includes(' over ') || name.endsWith(` over ${clientsProtocol}`);
  return asked && against !== undefined && ratioLimit !== undefined && ratioLimit.value !== 1;
}

function markdownTable(header: readonly string[], rows: readonly (readonly string[])[]): readonly string[] {
  const line = (cells: readonly string[]): string => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
  return [line(header), line(header.map(() => '---')), ...rows.map(line)];
}

function missedGoals({ questions }: Report): readonly string[] {
  const goals = questions.flatMap(({ name, figures }) =>
    figures.filter(misses).map((figure) => {
      const { value, unit, ceiling } = figure;
      const missed = testedLimits(figure).filter(({ isKept }) => !isKept);
      const beside = ceiling === undefined ? '' : `; the bare server ${formatNumber(ceiling)}`;
      return `* ${name}, ${figure.name}: ${formatNumber(value)} ${unit}, not ${missed.map(formatLimit).join(', ')}${beside}`;
    }),
  );
  return goals.length === 0 ? ['No goal is missed.'] : ['Missed:', '', ...goals];
}
