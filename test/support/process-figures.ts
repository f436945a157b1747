/** What the kernel counts for a process: its memory, its descriptors and its time. */
import { readFileSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import type { KubeClient } from './kube-client.js';

/** Resident memory, in MiB. */
export async function residentMiB(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1] ?? Number.NaN) / 1024;
}

/** Open descriptors: files, sockets, pipes. */
export async function descriptors(pid: number): Promise<number> {
  return (await readdir(`/proc/${pid}/fd`)).length;
}

/**
 * Processor time of all threads, and of child processes that have ended, in seconds. It comes from
 * Linux's /proc/PID/stat, whose unit is 10 ms.
 */
export function processorSeconds(pid: number): Readonly<{ own: number; children: number }> {
  const fields = readFileSync(`/proc/${pid}/stat`, 'latin1')
    .replace(/^.*\) /, '')
    .split(' ')
    .map(Number);
  const [user = 0, system = 0, childrenUser = 0, childrenSystem = 0] = fields.slice(11, 15);
  return { own: (user + system) / 100, children: (childrenUser + childrenSystem) / 100 };
}

/** The largest resident memory while the task runs, in MiB. */
export async function residentMiBDuring(pid: number, task: () => Promise<unknown>): Promise<number> {
  let most = await residentMiB(pid);
  const timer = setInterval(() => {
    residentMiB(pid).then(
      (now) => (most = Math.max(most, now)),
      () => {},
    );
  }, 50);
  try {
    await task();
    return Math.max(most, await residentMiB(pid));
  } finally {
    clearInterval(timer);
  }
}

/** The sum of all series of a metric; undefined if there is none. */
export async function metricOf(client: KubeClient, name: string): Promise<number | undefined> {
  const { text } = await client.raw('GET', '/metrics');
  const values = [...text.matchAll(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)$`, 'gm'))].map(([, value]) => Number(value));
  return values.length === 0 ? undefined : values.reduce((sum, value) => sum + value, 0);
}
