/**
 * Sends to this server what two shards of an unmodified kcp and its virtual-workspace server sent
 * to kcp's own cache server. Every answer must have the recorded status and essence. Every watch
 * must show the recorded events and keep the guarantees of docs/guarantees.md.
 *
 * Only the exceptions in replay.exceptions.json are allowed. An exception that nothing needs fails
 * the test too. A foreign server (TEST_SERVER) needs only those that come from the timing of the
 * recording, so there this is not checked.
 */
import { test } from '../../support/test.js';
import { StrataProcess, isForeign } from '../../support/strata-process.js';
import { readRecording } from './recording.js';
import { readExceptions, replay } from './replay.js';

for (const file of ['kcp-2-shards.jsonl', 'kcp-identity.jsonl']) {
  test(`${file} gets the recorded answers`, async (t) => {
    t.timeout(120_000);
    const [recording, exceptions] = await Promise.all([readRecording(file), readExceptions()]);
    await using server = await StrataProcess.start();

    const result = await replay(
      server.client(),
      recording,
      exceptions.filter((exception) => exception.file === file),
    );

    const unexpected = result.findings.filter((finding) => finding.exception === undefined);
    for (const { id, what, want, got } of unexpected)
      t.log(`✗ ${id} ${what}\n    want ${want.slice(0, 400)}\n    got  ${got.slice(0, 400)}`);
    for (const { guarantee, watch, message } of result.violations) t.log(`✗ ${guarantee} ${watch}: ${message}`);
    t.log(
      `${result.requests} requests, ${result.watches} watches, ${result.events} events; ${result.findings.length - unexpected.length} differences excepted, ${unexpected.length} not`,
    );
    t.is(unexpected.length, 0);
    t.is(result.violations.length, 0);
    if (!isForeign) t.deepEqual(result.unusedExceptions, []);
  });
}

test('a replay finds a status, a member and an event that differ from the recording', async (t) => {
  t.timeout(120_000);
  const recording = (await readRecording('kcp-2-shards.jsonl')).filter(({ id }) => id <= 60);
  const [post, get] = [recording.find(({ method }) => method === 'POST')!, recording.filter(({ method }) => method === 'POST')[1]!];
  const watch = recording.find(({ chunks = [] }) => chunks.filter(([, bytes]) => bytes.includes('"ADDED"')).length > 5)!;
  await using server = await StrataProcess.start();

  const forged = recording.map((each) => {
    if (each === post) return { ...each, status: 418 };
    if (each === get) return { ...each, answer: each.answer!.replace('"kcp.io/shard":"root"', '"kcp.io/shard":"amber"') };
    // Cuts watches to end before the sixtieth request is answered, so that the replay ends soon.
    const chunks = (each.chunks ?? []).filter(([ms]) => each.t + ms <= recording.at(-1)!.t);
    return each.chunks === undefined
      ? each
      : { ...each, ms: recording.at(-1)!.t - each.t + 1_000, chunks: each === watch ? chunks.toSpliced(-1, 1) : chunks };
  });
  const { findings } = await replay(server.client(), forged, []);

  const of = (id: number): readonly string[] => findings.filter((finding) => finding.id === id).map(({ what }) => what);
  t.true(of(post.id).some((what) => what.endsWith(': status')));
  t.true(of(get.id).some((what) => what.endsWith(': annotations')));
  t.true(of(watch.id).some((what) => what.includes('events of ')));
});
