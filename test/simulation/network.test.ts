import { rounds } from '../support/sizes.js';
import { test } from '../support/test.js';
import fc from 'fast-check';
import type { FrameConnection } from '../../src/frames/frame-connection.js';
import type { Frame } from '../../src/frames/frame.js';
import { writeFrame } from '../../src/frames/frame-codec.js';
import { aPut, someFrames } from '../support/frames/some-frames.js';
import { frameSize } from './frame-size.js';
import { Network, type NetworkOptions } from './network.js';
import { VirtualTime } from './virtual-time.js';

const forever = (): AbortSignal => new AbortController().signal;

/** Two hosts, ten milliseconds apart, and what `birch` has received. */
async function aPair(options: Partial<NetworkOptions> = {}, seed = 1) {
  const time = new VirtualTime();
  const network = new Network({ time, seed }, options);
  const accepted: FrameConnection[] = [];
  network.listen('birch', (connection) => accepted.push(connection));
  const amber = await time.awaited(network.connect('amber', 'birch', forever()), 1_000);
  const birch = accepted[0];
  if (birch === undefined) throw new Error('a connection has two ends');
  const heard = listen(time, birch);
  return { time, network, amber, birch, heard, back: listen(time, amber) };
}

/** Records the frames that arrive and how the connection ends. */
function listen(time: VirtualTime, connection: FrameConnection) {
  const heard: { frames: { atMs: number; frame: Frame }[]; closed: { code: number; atMs: number } | undefined } = {
    frames: [],
    closed: undefined,
  };
  const read = async (): Promise<void> => {
    for await (const frame of connection.frames()) heard.frames.push({ atMs: time.elapsedMs, frame });
  };
  void read();
  void connection.closed.then(({ code }) => {
    heard.closed = { code, atMs: time.elapsedMs };
  });
  return heard;
}

function aDelete(sequence: number): Frame {
  return { kind: 'delete', sequence, slice: aPut().slice, keys: [{ cluster: 'acme', namespace: '', name: `n${sequence}` }] };
}

function sequences({ frames }: Readonly<{ frames: readonly { frame: Frame }[] }>): readonly number[] {
  return frames.map(({ frame }) => ('sequence' in frame ? frame.sequence : 0));
}

test('opening a connection takes its round trips, and a frame arrives unchanged after the delay', async (t) => {
  const { time, amber, heard } = await aPair();
  const sentAtMs = time.elapsedMs;

  const sent = someFrames.filter(({ kind }) => kind !== 'bye');
  for (const frame of sent) amber.send(frame);
  await time.settle(60_000);

  t.is(sentAtMs, 60);
  t.deepEqual(
    heard.frames.map(({ frame }) => writeFrame(frame)),
    sent.map((frame) => writeFrame(frame)),
  );
  t.deepEqual([...new Set(heard.frames.map(({ atMs }) => atMs))], [70]);
});

test('jitter and loss delay frames and never reorder them; the same seed gives the same delays', async (t) => {
  const run = async (seed: number): Promise<readonly { atMs: number; frame: Frame }[]> => {
    const { time, network, amber, heard } = await aPair({}, seed);
    network.set('amber', 'birch', { jitterMs: 30, lossShare: 0.1 });
    for (let sequence = 1; sequence <= 100; sequence += 1) time.after(sequence * 3, () => amber.send(aDelete(sequence)));
    await time.settle(60_000);
    return heard.frames;
  };

  const [one, again, other] = [await run(5), await run(5), await run(6)];

  t.deepEqual(
    sequences({ frames: one }),
    Array.from({ length: 100 }, (_, index) => index + 1),
  );
  t.deepEqual(one, again);
  t.notDeepEqual(
    one.map(({ atMs }) => atMs),
    other.map(({ atMs }) => atMs),
  );
});

test('a partition that heals before the ends give up loses nothing', async (t) => {
  const { time, network, amber, birch, heard, back } = await aPair();
  amber.send(aDelete(1));
  network.partition('amber', 'birch');
  amber.send(aDelete(2));
  birch.send(aDelete(7));
  await time.advance(19_000);
  const during = [heard.frames.length, back.frames.length];

  network.heal('amber', 'birch');
  amber.send(aDelete(3));
  await time.advance(60_000);

  t.deepEqual(during, [0, 0]);
  t.deepEqual(sequences(heard), [1, 2, 3]);
  t.deepEqual(sequences(back), [7]);
  t.deepEqual([heard.closed, back.closed], [undefined, undefined]);
});

test('a partition that lasts breaks both ends after the idle timeout, and none of its frames arrives later', async (t) => {
  const { time, network, amber, heard, back } = await aPair();
  await time.advance(940);
  network.partition('amber', 'birch');
  amber.send(aDelete(1));
  await time.advance(30_000);

  network.heal('amber', 'birch');
  await time.advance(30_000);

  t.deepEqual(heard.closed, { code: 1006, atMs: 21_000 });
  t.deepEqual(back.closed, { code: 1006, atMs: 21_000 });
  t.deepEqual(heard.frames, []);
});

test('two short partitions do not add up to a long one', async (t) => {
  const { time, network, heard, back } = await aPair();
  for (let round = 0; round < 3; round += 1) {
    network.partition('amber', 'birch');
    await time.advance(15_000);
    network.heal('amber', 'birch');
    await time.advance(1_000);
  }

  t.deepEqual([heard.closed, back.closed], [undefined, undefined]);
  t.is(time.elapsedMs, 60 + 48_000);
});

test('half open: the end that receives nothing breaks, and the other end is sent a reset', async (t) => {
  const { time, network, birch, heard, back } = await aPair();
  network.halfOpen('amber', 'birch');
  for (let round = 1; round <= 10; round += 1) time.after(round * 1_900, () => birch.send(aDelete(round)));
  await time.advance(30_000);

  t.deepEqual(heard.closed, { code: 1006, atMs: 20_060 });
  t.deepEqual(back.closed, { code: 1006, atMs: 20_070 });
  t.is(back.frames.length, 10);
});

test('half open the other way: the end that still receives gets every frame, and then the reset of its peer', async (t) => {
  const { time, network, amber, heard, back } = await aPair();
  network.halfOpen('birch', 'amber');
  amber.send(aDelete(1));
  await time.advance(15_000);
  amber.send(aDelete(2));
  await time.advance(60_000);

  t.deepEqual(back.closed, { code: 1006, atMs: 20_060 });
  t.deepEqual(heard.closed, { code: 1006, atMs: 20_070 });
  t.deepEqual(sequences(heard), [1, 2]);
});

test('both ends see a cut at once, and can connect again', async (t) => {
  const { time, network, amber, heard, back } = await aPair();
  network.cut('amber', 'birch');
  amber.send(aDelete(1));
  await time.advance(0);
  const atOnce = [heard.closed?.code, back.closed?.code];

  const again = await time.awaited(network.connect('amber', 'birch', forever()), 1_000);

  t.deepEqual(atOnce, [1006, 1006]);
  t.is(again.peer, 'birch');
});

test('an end reads the bye before the close, and both ends get its code', async (t) => {
  const { time, amber, heard, back } = await aPair();
  amber.send(aDelete(1));
  amber.close('shutdown', 'stopping', 500);
  amber.send(aDelete(2));
  await time.advance(1_000);

  t.deepEqual(
    heard.frames.map(({ frame }) => frame.kind),
    ['delete', 'bye'],
  );
  t.deepEqual(heard.closed, { code: 4001, atMs: 70 });
  t.deepEqual(back.closed, { code: 4001, atMs: 80 });
});

test('an end that cannot reach the peer with its bye is cut off after a grace', async (t) => {
  const { time, network, amber, back } = await aPair();
  network.partition('amber', 'birch');
  amber.close('shutdown', 'stopping');
  await time.advance(5_000);

  t.deepEqual(back.closed, { code: 1006, atMs: 2_060 });
});

test('a crash is reported to the peers, and never to the process that died', async (t) => {
  const { time, network, birch, heard, back } = await aPair();
  birch.send(aDelete(1));
  network.crash('birch');
  await time.advance(60_000);

  t.deepEqual(sequences(back), [1]);
  t.deepEqual(back.closed, { code: 1006, atMs: 70 });
  t.is(heard.closed, undefined);
  await t.throwsAsync(time.awaited(network.connect('amber', 'birch', forever()), 20_000), {
    message: 'cannot connect to birch: nobody listens',
  });
});

test('the peers of a host that loses its power notice after the idle timeout', async (t) => {
  const { time, network, birch, heard, back } = await aPair();
  birch.send(aDelete(1));
  network.vanish('birch');
  await time.advance(60_000);

  t.deepEqual(sequences(back), []);
  t.deepEqual(back.closed, { code: 1006, atMs: 20_060 });
  t.is(heard.closed, undefined);
});

test('a host that pauses for a moment misses nothing; after a long pause its peers have left, and it notices when it wakes', async (t) => {
  const { time, network, amber, birch, heard, back } = await aPair();
  network.freeze('birch');
  amber.send(aDelete(1));
  await time.advance(10_000);
  network.thaw('birch');
  await time.advance(1_000);
  const afterMoment = sequences(heard);
  network.freeze('birch');
  await time.advance(60_000);
  const [peers, own] = [back.closed, heard.closed];
  network.thaw('birch');
  birch.send(aDelete(9));
  await time.advance(1_000);

  t.deepEqual(afterMoment, [1]);
  t.deepEqual(peers, { code: 1006, atMs: 31_060 });
  t.is(own, undefined);
  t.deepEqual(heard.closed, { code: 1006, atMs: 71_070 });
});

test('a host that paused while its peer lost its power notices when it wakes', async (t) => {
  const { time, network, heard } = await aPair();
  network.freeze('birch');
  network.vanish('amber');
  await time.advance(60_000);
  const asleep = heard.closed;
  network.thaw('birch');
  await time.advance(60_000);

  t.is(asleep, undefined);
  t.is(heard.closed?.code, 1006);
});

test('a connection attempt across a partition ends with the timeout, or earlier when it is given up', async (t) => {
  const { time, network } = await aPair();
  network.partition('amber', 'birch');
  const giveUp = new AbortController();
  const early = network.connect('amber', 'birch', giveUp.signal);
  early.catch(() => undefined);
  time.after(500, () => giveUp.abort());

  const startedAtMs = time.elapsedMs;
  await t.throwsAsync(time.awaited(network.connect('amber', 'birch', forever()), 60_000), { message: /did not answer within/ });
  const waitedMs = time.elapsedMs - startedAtMs;

  t.is(waitedMs, 10_000);
  await t.throwsAsync(early, { message: /the attempt was canceled/ });
});

test('a peer that does not read holds up only its own sender; a sender that goes on regardless is cut off', async (t) => {
  const time = new VirtualTime();
  const network = new Network({ time, seed: 1 }, { bufferedBytesLow: 1_000, bufferedBytesMax: 20_000 });
  network.set('amber', 'birch', { windowBytes: 5_000 });
  const accepted: FrameConnection[] = [];
  network.listen('birch', (connection) => accepted.push(connection));
  const amber = await time.awaited(network.connect('amber', 'birch', forever()), 1_000);
  const put = aPut({ objects: [{ cluster: 'acme', namespace: '', name: 'one', sourceVersion: '1', body: new Uint8Array(2_000) }] });
  for (let count = 0; count < 5; count += 1) amber.send(put);
  await time.advance(1_000);
  const unread = amber.bufferedBytes;
  let isDrained = false;
  void amber.drained().then(() => {
    isDrained = true;
  });
  await time.advance(1_000);
  const whileUnread = isDrained;

  const birch = accepted[0];
  if (birch === undefined) throw new Error('a connection has two ends');
  const heard = listen(time, birch);
  await time.advance(1_000);

  t.true(unread > 4_000 && unread < 7_000, `${unread}`);
  t.false(whileUnread);
  t.true(isDrained);
  t.is(heard.frames.length, 5);
  t.is(amber.bufferedBytes, 0);

  network.partition('amber', 'birch');
  for (let count = 0; count < 20; count += 1) amber.send(put);

  t.deepEqual(await time.awaited(amber.closed, 0), { code: 1006 });
});

test('a slow line passes its bytes at its rate', async (t) => {
  const { time, network, amber, heard } = await aPair();
  network.set('amber', 'birch', { bytesPerMs: 100 });
  const put = aPut({ objects: [{ cluster: 'acme', namespace: '', name: 'one', sourceVersion: '1', body: new Uint8Array(10_000) }] });
  amber.send(put);
  amber.send(put);
  await time.advance(1_000);

  const [first = 0, second = 0] = heard.frames.map(({ atMs }) => atMs);
  t.true(first > 170 && first < 172, `${first}`);
  t.true(second > 270 && second < 273, `${second}`);
});

test('arrivals are counted by link, direction and kind, and reported to observers', async (t) => {
  const { time, network, amber, birch } = await aPair();
  const seen: string[] = [];
  const cancel = network.observe(({ from, to, connection, frame, atMs }) => seen.push(`${from} ${to} ${connection} ${frame.kind} ${atMs}`));
  amber.send(aPut());
  amber.send(aDelete(3));
  amber.send(aDelete(4));
  birch.send({ kind: 'ack', sequence: 4, credit: { mutations: 1, bytes: 1 } });
  await time.advance(100);
  cancel();
  amber.send(aDelete(5));
  await time.advance(100);

  t.deepEqual(seen, ['amber birch 1 put 70', 'amber birch 1 delete 70', 'amber birch 1 delete 70', 'birch amber 1 ack 70']);
  t.deepEqual(network.traffic('amber', 'birch').get('put'), { frames: 1, bytes: writeFrame(aPut()).length });
  t.is(network.traffic('amber', 'birch').get('delete')?.frames, 3);
  t.is(network.traffic('birch', 'amber').get('ack')?.frames, 1);
  t.is(network.traffic('birch', 'amber').get('delete'), undefined);
});

test('a fault drops or changes frames for as long as it lasts', async (t) => {
  const { time, network, amber, heard } = await aPair();
  network.tamper((frame, { from }) => (from === 'amber' && frame.kind === 'delete' && frame.sequence === 2 ? [] : [frame]));
  for (const sequence of [1, 2, 3]) amber.send(aDelete(sequence));
  network.tamper(undefined);
  amber.send(aDelete(2));
  await time.advance(100);

  t.deepEqual(sequences(heard), [1, 3, 2]);
});

test('sizes that are added up equal the written ones, and frames by reference cost the same bytes', async (t) => {
  const texts = fc.string({ unit: 'grapheme-ascii', maxLength: 300 });
  const body = fc.option(
    fc.integer({ min: 0, max: 70_000 }).map((length) => new Uint8Array(length)),
    { nil: undefined },
  );
  const object = fc.record({ cluster: texts, namespace: texts, name: texts, sourceVersion: texts, body });
  const objects = fc.array(object, { maxLength: 40 });
  const { time, network, amber, heard } = await aPair({ frames: 'references' });
  const put = aPut();

  fc.assert(
    fc.property(objects, (several) => {
      const frame = aPut({ objects: several });
      t.is(frameSize(frame), writeFrame(frame).length);
    }),
    { numRuns: rounds(50) },
  );
  amber.send(put);
  await time.advance(100);

  t.is(heard.frames[0]?.frame, put);
  t.is(network.traffic('amber', 'birch').get('put')?.bytes, writeFrame(put).length);
});
