import { test } from '../../support/test.js';
import { drawFamily } from '../../../bench/harness/picture.js';
import { formatBar } from '../../../bench/harness/progress.js';
import { formatMarkdown } from '../../../bench/harness/publish.js';
import type { Figure } from '../../../bench/harness/question.js';
import { formatReport, type Report } from '../../../bench/harness/report.js';
import { median, percentile } from '../../../bench/harness/statistics.js';

const gets: Figure = {
  name: 'gets',
  value: 9_000,
  unit: '/s',
  better: 'more',
  limit: { kind: 'at least', value: 10_000 },
  ceiling: 15_000,
  against: 4_500,
  ratioLimit: { kind: 'at least', value: 1 },
};
const plain: Figure = { name: 'p99', value: 1.5, unit: 'ms' };

test('the table has the ceiling, the other server and the ratio, and counts missed limits', (t) => {
  const text = formatReport(aReport([gets, plain]));

  t.regex(text, /question +figure +value +upstream +ratio +limit +ceiling +note/);
  t.regex(text, /get +gets +9,000 \/s +4,500 +2\.00 × +≥ 10,000, ≥ 1 × +MISSED +15,000/);
  t.regex(text, /1 limits missed/);
});

test('a run without another server has no column for it', (t) => {
  t.notRegex(formatReport({ ...aReport([gets]), against: undefined }), /ratio/);
});

test('a page shows the figures that can be compared, and the missed limits', (t) => {
  const text = formatMarkdown(aReport([gets, plain]));

  t.regex(text, /\| get \| gets \| 9,000 \/s \| 4,500 \| 2\.00 × \| ≥ 10,000, ≥ 1 × \| MISSED \| 15,000 \|/);
  t.notRegex(text, /p99/);
  t.regex(text, /\* get, gets: 9,000 \/s, not ≥ 10,000; the bare server 15,000/);
});

test('a picture has a bar for each server, and texts are escaped', (t) => {
  const picture = drawFamily(aReport([{ ...gets, name: 'gets <a & b>' }, plain]), 'requests') ?? '';

  t.is([...picture.matchAll(/height="12" rx="2" fill="[^"]+"\/><text x="\d+\.\d"/g)].length, 3);
  t.true(picture.includes('gets &lt;a &amp; b&gt;'));
  t.notRegex(picture, /p99/);
});

test('a family without figures has no picture', (t) => {
  t.is(drawFamily(aReport([gets]), 'tiers'), undefined);
});

test('a progress bar is as full as the run has come, and never more than full', (t) => {
  t.is(formatBar(6, 12), `[${'█'.repeat(12)}${'░'.repeat(12)}] 6/12`);
  t.is(formatBar(13, 12), `[${'█'.repeat(24)}] 12/12`);
});

test('medians and percentiles are those of the sorted values, and no values have no median', (t) => {
  t.is(median([3, 1, 2]), 2);
  t.is(median([4, 1]), 2.5);
  t.is(percentile([5, 1, 4, 2, 3], 0.99), 5);
  t.true(Number.isNaN(median([])));
});

function aReport(figures: readonly Figure[]): Report {
  return {
    startedAt: '2026-11-24T00:00:00.000Z',
    command: 'npm run bench',
    server: 'Strata, this build',
    against: 'upstream',
    client: 'go1.26',
    elapsedMs: 60_000,
    machine: {
      processor: 'P',
      cores: 2,
      memoryGib: 8,
      kernel: '6',
      node: 'v20',
      sqlite: '3',
      loadBefore: 0,
      steadiness: { p10Ms: 9, p50Ms: 10, p90Ms: 12, samples: 30 },
    },
    options: { rounds: 3 },
    questions: [{ name: 'get', family: 'requests', asks: '?', elapsedMs: 1, serverProcessorMs: 1, figures, checks: [] }],
    holds: true,
    limitsMissed: 1,
  };
}
