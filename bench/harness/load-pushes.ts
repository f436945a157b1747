/**
 * The jobs that push: through the real sender, and the bare loop that is its ceiling. In `push` and
 * `pushBare` all bodies are made before the clock starts.
 */
import { pack, unpack } from 'msgpackr';
import { WebSocket } from 'ws';
import { Client } from './client.js';
import type { Compared, CompareJob, PushBareJob, PushedBare, Pushed, PushJob, PushManyJob } from './jobs.js';
import { collectionPath, exportsType, pushedMixedObject } from './mixed-objects.js';
import { batchesWhenAsked, PushingShard, pushedObject, putBatches, sync } from './pushing-shard.js';

export async function pushJob({ target, shard, objects, round, thenChanges }: PushJob): Promise<Pushed> {
  const synced = sync(putBatches(shard, objects, round));
  const changes = thenChanges ? putBatches(shard, objects, round + 1) : undefined;
  const pushing = await PushingShard.open(target, shard);
  try {
    const syncMs = await pushing.send(synced);
    const changeMs = changes === undefined ? Number.NaN : await pushing.send(changes);
    return { syncMs, changeMs, refused: pushing.refused };
  } finally {
    await pushing.close();
  }
}

export async function pushManyJob({ target, shard, objects, clusters }: PushManyJob): Promise<Pick<Pushed, 'syncMs'>> {
  const pushing = await PushingShard.open(target, shard);
  try {
    return { syncMs: await pushing.send(sync(batchesWhenAsked(shard, objects, 0, clusters))) };
  } finally {
    await pushing.close();
  }
}

export async function pushBareJob({ target, shard, objects, frameObjects, framesMax, masked }: PushBareJob): Promise<PushedBare> {
  const entries = Array.from({ length: objects }, (_, index) => {
    const { cluster, name, body } = pushedObject(shard, index, 0);
    return [`${shard}|${cluster}|${name}`, body] as const;
  });
  const frames = Array.from({ length: Math.ceil(objects / frameObjects) }, (_, frame) => [
    frame + 1,
    ...entries.slice(frame * frameObjects, (frame + 1) * frameObjects).flat(),
  ]);
  const socket = new WebSocket(`wss://127.0.0.1:${target.port}`, {
    rejectUnauthorized: false,
    perMessageDeflate: false,
    // Strata's own client does the same: ws skips a mask of zeros, and copies nothing for it.
    ...(masked ? {} : { generateMask: (mask: Buffer) => void mask.fill(0) }),
  });
  try {
    return await new Promise<PushedBare>((resolve, reject) => {
      let startedAt = 0;
      let [sent, acknowledged] = [0, 0];
      const send = (): void => {
        while (sent < frames.length && sent - acknowledged < framesMax) socket.send(pack(frames[sent++]));
      };
      socket.on('open', () => {
        startedAt = performance.now();
        send();
      });
      socket.on('message', (message: Buffer) => {
        [acknowledged] = unpack(message) as [number];
        if (acknowledged === frames.length) resolve({ elapsedMs: performance.now() - startedAt });
        else send();
      });
      socket.on('error', reject);
      socket.on('close', () => reject(new Error('the bare server closed')));
    });
  } finally {
    socket.terminate();
  }
}

export async function compareJob({ target, shard, objects, round }: CompareJob): Promise<Compared> {
  const client = new Client(target, 'HTTP/1.1');
  try {
    const chunks: Buffer[] = [];
    const answer = await client.get(collectionPath(exportsType, shard));
    await answer.read((chunk) => void chunks.push(chunk));
    const list = JSON.parse(Buffer.concat(chunks).toString('utf8')) as { items: readonly Item[] };
    const items = new Map(list.items.map((item) => [item.metadata.name, item]));
    const different = Array.from({ length: objects }, (_, index) => pushedMixedObject(shard, index)).filter(({ name, text }) => {
      const item = items.get(name);
      return item === undefined || withoutVersion(item) !== text(round);
    });
    return { listed: list.items.length, different: different.length };
  } finally {
    client.close();
  }
}

/** The server may put a resourceVersion that was not in the body anywhere. */
function withoutVersion(item: Item): string {
  const { resourceVersion: _, ...metadata } = item.metadata;
  return JSON.stringify({ ...item, metadata });
}

type Item = Readonly<{ metadata: Readonly<{ name: string; resourceVersion: string }> }>;
