/** The measured server as its pushers see it, and the figures that it reports to an operator. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { SliceStatus, StatusReport } from '../../src/domain/status.js';
import type { PushTarget } from './jobs.js';
import { setTimeout as sleep } from 'node:timers/promises';
import type { StrataProcess } from '../../test/support/strata-process.js';
import type { Target } from './client.js';
import { exportsType } from './mixed-objects.js';

export const statusPath = '/services/cache/status';

const heldMsMax = 60_000;
const pollMs = 50;

export function targetOf({ port, master }: StrataProcess): Target {
  return { port, certificate: master.certificate, key: master.key };
}

/**
 * A server without given files makes its own certificate and keeps it in its folder, as kcp does.
 */
export async function pushTargetOf(server: StrataProcess): Promise<PushTarget> {
  return { ...targetOf(server), ca: await readFile(join(server.dataFolder, 'apiserver.crt'), 'utf8') };
}

/** Resolves when the server holds `objects` exports of a shard. */
export async function untilHolds(server: StrataProcess, shard: string, objects: number): Promise<void> {
  const deadline = performance.now() + heldMsMax;
  for (;;) {
    const slice = exportsOf(await readStatus(server), shard);
    if (slice?.objects === objects) return;
    if (performance.now() > deadline) throw new Error(`the server does not hold what ${shard} has: ${JSON.stringify(slice)}`);
    await sleep(pollMs);
  }
}

export function exportsOf({ shards }: StatusReport, shard: string): SliceStatus | undefined {
  const { group, resource } = exportsType;
  return shards.find((one) => one.shard === shard)?.slices.find((one) => one.group === group && one.resource === resource);
}

export async function readStatus(server: Pick<StrataProcess, 'client'>): Promise<StatusReport> {
  const { status, text } = await server.client().raw('GET', statusPath);
  if (status !== 200) throw new Error(`${statusPath}: ${status} ${text.slice(0, 300)}`);
  return JSON.parse(text) as StatusReport;
}
