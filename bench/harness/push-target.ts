/** The measured server as its pushers see it, and the figures that it reports to an operator. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { StatusReport } from '../../src/domain/status.js';
import type { PushTarget } from './jobs.js';
import type { Bench } from './question.js';

export const statusPath = '/services/cache/status';

/** The certificate that the server made for itself lies in its folder, as kcp's own does. */
export async function pushTargetOf({ server, target }: Pick<Bench, 'server' | 'target'>): Promise<PushTarget> {
  return { ...target, ca: await readFile(join(server.dataFolder, 'apiserver.crt'), 'utf8') };
}

export async function readStatus({ server }: Readonly<{ server: Pick<Bench['server'], 'client'> }>): Promise<StatusReport> {
  const { status, text } = await server.client().raw('GET', statusPath);
  if (status !== 200) throw new Error(`${statusPath}: ${status} ${text.slice(0, 300)}`);
  return JSON.parse(text) as StatusReport;
}
