/**
 * A pusher that floods: it changes the same objects without end, as fast as the server accepts.
 * Beside it a session breaks the rules. It sends whatever its socket accepts, waits for no
 * acknowledgement, and reconnects when it was cut off.
 *
 * Bounds: both end after `floodMs`.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { systemClock } from '../../src/clock.js';
import { parseShardName } from '../../src/domain/shard.js';
import type { Slice } from '../../src/domain/slice.js';
import { connectSocket, defaultConnectOptions } from '../../src/frames/connect-socket.js';
import type { FrameConnection } from '../../src/frames/frame-connection.js';
import { protocolVersion, type Frame, type PushedObject } from '../../src/frames/frame.js';
import type { Outgoing } from '../../src/sender/source.js';
import type { Flooded, FloodJob, PushTarget } from './jobs.js';
import { exportsType } from './mixed-objects.js';
import { connectUrl, pushedObject, PushingShard, putBatches, sync } from './pushing-shard.js';

const { group, resource, version } = exportsType;
const rawFrameObjects = 128;
const rawPauseMs = 1_000;

export async function floodJob({ target, shard, rawShard, objects, floodMs }: FloodJob): Promise<Flooded> {
  const contents = [1, 2].map((round) => putBatches(shard, objects, round));
  const pushing = await PushingShard.open(target, shard);
  try {
    await pushing.send(sync(putBatches(shard, objects, 0)));
    const endsAt = performance.now() + floodMs;
    let pushed = 0;
    function* changes(): Generator<readonly Outgoing[]> {
      for (let round = 0; performance.now() < endsAt; round = 1 - round) {
        for (const batch of contents[round]!) {
          pushed += batch.length;
          yield batch;
        }
      }
    }
    const [elapsedMs, raw] = await Promise.all([pushing.send(changes()), sendRegardless(target, rawShard, endsAt)]);
    return { pushed, elapsedMs, ...raw };
  } finally {
    await pushing.close();
  }
}

async function sendRegardless(
  target: PushTarget,
  shard: string,
  endsAt: number,
): Promise<Pick<Flooded, 'rawSent' | 'rawSessions' | 'rawEnds'>> {
  const slice: Slice = { shard: parseShardName(shard)!, resource: { group, resource, identity: '' } };
  const contents = [0, 1].map((round) => Array.from({ length: rawFrameObjects }, (_, index) => pushedObject(shard, index, round)));
  const ends = new Set<string>();
  let [rawSent, rawSessions] = [0, 0];
  while (performance.now() < endsAt) {
    const connection = await connectSocket(
      connectUrl(target),
      target,
      { clock: systemClock, signal: AbortSignal.timeout(defaultConnectOptions.connectTimeoutMs) },
      defaultConnectOptions,
    );
    const { sent, end } = await sendUntilCut(connection, { slice, contents, endsAt });
    rawSessions += 1;
    rawSent += sent;
    ends.add(end);
    await sleep(Math.max(0, Math.min(rawPauseMs, endsAt - performance.now())));
  }
  return { rawSent, rawSessions, rawEnds: [...ends] };
}

async function sendUntilCut(
  connection: FrameConnection,
  { slice, contents, endsAt }: Readonly<{ slice: Slice; contents: readonly (readonly PushedObject[])[]; endsAt: number }>,
): Promise<Readonly<{ sent: number; end: string }>> {
  let end: string | undefined;
  const reading = (async () => {
    for await (const frame of connection.frames()) if (frame.kind === 'bye') end = `${frame.reason}: ${frame.message}`;
    return 'closed without a bye';
  })();
  connection.send({ kind: 'hello', ...hello(slice) });
  connection.send({ kind: 'begin', sequence: 1, slice, revision: '1' });
  let sent = 0;
  while (end === undefined && performance.now() < endsAt) {
    const objects = contents[(sent / rawFrameObjects) % contents.length]!;
    connection.send({ kind: 'put', sequence: 2 + sent, slice, version, objects });
    sent += rawFrameObjects;
    await Promise.race([connection.drained(), reading.then((silence) => (end ??= silence))]);
  }
  end ??= 'held back until the end';
  connection.terminate();
  await reading;
  return { sent, end };
}

function hello(slice: Slice): Omit<Frame & { kind: 'hello' }, 'kind'> {
  const { shard } = slice;
  return {
    protocol: protocolVersion,
    role: 'shard',
    name: shard,
    process: randomUUID(),
    term: 0,
    takesOver: true,
    route: [],
    agent: 'strata-bench',
    credit: undefined,
    limits: undefined,
  };
}
