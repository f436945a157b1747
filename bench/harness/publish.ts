/** What a run leaves behind for readers: one picture for each family, and the table in a page. */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { drawFamily } from './picture.js';
import { families, misses } from './question.js';
import { surroundingsOf, tableHeader, tableRows, type Report } from './report.js';

const beginMark = '<!-- bench: begin -->';
const endMark = '<!-- bench: end -->';

/** Families without a figure that has a direction get no picture. */
export async function writePictures(report: Report, folder: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  for (const family of families) {
    const picture = drawFamily(report, family);
    if (picture !== undefined) await writeFile(join(folder, `${family}.svg`), picture);
  }
}

export async function writePage(report: Report, file: string): Promise<void> {
  const page = await readFile(file, 'utf8');
  const [begin, end] = [page.indexOf(beginMark), page.indexOf(endMark)];
  if (begin === -1 || end < begin) throw new Error(`${file} has no place for the table: ${beginMark} and ${endMark}`);
  await writeFile(file, `${page.slice(0, begin)}${beginMark}\n\n${formatMarkdown(report)}\n\n${page.slice(end)}`);
}

/** Only figures that a reader can compare: those with a direction or a limit. */
export function formatMarkdown(report: Report): string {
  const questions = report.questions.map((asked) => ({
    ...asked,
    figures: asked.figures.filter((figure) => figure.better !== undefined || figure.limit !== undefined),
  }));
  const rows = tableRows({ ...report, questions });
  const line = (cells: readonly string[]): string => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
  const header = tableHeader(report);
  const missed = report.questions.flatMap(({ name, figures }) => figures.filter(misses).map((figure) => `${name}: ${figure.name}`));
  return [
    ...surroundingsOf(report).map(([name, value]) => `* ${name}: ${name === 'run' ? value.replace(/(npm .*)$/, '`$1`') : value}`),
    '',
    line(header),
    line(header.map(() => '---')),
    ...rows.map(line),
    '',
    missed.length === 0 ? 'No limit is missed.' : `Missed: ${missed.join('; ')}.`,
  ].join('\n');
}
