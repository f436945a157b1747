/** The results of a run for readers: one picture for each family, and the table in a page. */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { drawFamily } from './picture.js';
import { directionOf, families, misses, testedLimits } from './question.js';
import { formatLimit, formatNumber, surroundingsOf, tableHeader, tableRows, type Report } from './report.js';

const beginMark = '<!-- bench: begin -->';
const endMark = '<!-- bench: end -->';

/** A family without a figure that has a direction gets no picture. */
export async function writePictures(report: Report, folder: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  for (const family of families) {
    const picture = drawFamily(report, family);
    if (picture !== undefined) await writeFile(join(folder, `${family}.svg`), picture);
  }
}

/** Replaces the text between the marks of the benchmark in a page. */
export async function writePage(text: string, file: string): Promise<void> {
  const page = await readFile(file, 'utf8');
  const [begin, end] = [page.indexOf(beginMark), page.indexOf(endMark)];
  if (begin === -1 || end < begin) throw new Error(`${file} has no place for the table: ${beginMark} and ${endMark}`);
  await writeFile(file, `${page.slice(0, begin)}${beginMark}\n\n${text}\n\n${page.slice(end)}`);
}

/** Includes only figures that a reader can compare: those with a direction or a limit. */
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
