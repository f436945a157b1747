/**
 * Sends 185 requests to a fresh server: reads, writes, errors, list options and watch semantics on
 * a kcp type and a native type. basics.upstream.jsonl has the answers of kcp's own cache server,
 * deliberate.json the deliberate differences. If TEST_SERVER names kcp's own server, nothing may
 * differ and deliberate.json is not read.
 */
import { test } from '../../support/test.js';
import { StrataProcess, isForeign } from '../../support/strata-process.js';
import { compareTranscripts, formatDifference, readDeliberate, readTranscript, runScript, type Step } from './transcript.js';

test('the server answers the 185 steps as kcp’s cache server does, except for deliberate differences', async (t) => {
  t.timeout(120_000);
  const [want, deliberate] = await Promise.all([readTranscript('basics.upstream.jsonl'), isForeign ? {} : readDeliberate()]);
  await using server = await StrataProcess.start();

  const got = await runScript('basics.mjs', server.client());

  const differences = compareTranscripts(want, got, deliberate);
  for (const difference of differences) t.log(formatDifference(difference));
  t.log(`${want.length - differences.length} passed, ${differences.length} failed`);
  t.is(differences.length, 0);
});

test('every deliberate difference names a recorded step and gives its reason', async (t) => {
  const [steps, deliberate] = await Promise.all([readTranscript('basics.upstream.jsonl'), readDeliberate()]);
  const titles = new Set(steps.map((step) => step.title));

  t.deepEqual(
    Object.keys(deliberate).filter((title) => !titles.has(title)),
    [],
  );
  t.deepEqual(
    Object.keys(deliberate).filter((title) => typeof deliberate[title]?.['because'] !== 'string'),
    [],
  );
});

test('the comparison finds a wrong status, a wrong object, a wrong order of events and a missing step', (t) => {
  const object = (name: string): unknown => ({ kind: 'APIExport', metadata: { name } });
  const step = (title: string, status: number, answer: unknown): Step => ({
    title,
    method: 'GET',
    path: '/',
    status,
    type: 'application/json',
    answer,
  });
  const want = [
    step('status', 200, object('a')),
    step('object', 200, object('a')),
    step('events', 200, [
      { type: 'ADDED', object: object('a') },
      { type: 'DELETED', object: object('a') },
    ]),
    step('missing', 200, object('a')),
  ];
  const got = [
    step('status', 201, object('a')),
    step('object', 200, object('b')),
    step('events', 200, [
      { type: 'DELETED', object: object('a') },
      { type: 'ADDED', object: object('a') },
    ]),
  ];

  const seen = compareTranscripts(want, got, {}).map((difference) => difference.title);

  t.deepEqual(seen, ['status', 'object', 'events', 'missing']);
});

test('a deliberate answer replaces the recorded one, null allows any, and everything else is still compared', (t) => {
  const want: Step = { title: 'one', method: 'GET', path: '/', status: 500, type: 'text/plain', answer: 'oops' };
  const got: Step = {
    title: 'one',
    method: 'GET',
    path: '/',
    status: 400,
    type: 'application/json',
    answer: { kind: 'Status', status: 'Failure', reason: 'BadRequest' },
  };
  const own = { status: 400, kind: 'Status', outcome: 'Failure', reason: 'BadRequest', type: null };

  t.deepEqual(compareTranscripts([want], [got], { one: own }), []);
  t.is(compareTranscripts([want], [got], { one: { ...own, reason: 'Invalid' } }).length, 1);
});
