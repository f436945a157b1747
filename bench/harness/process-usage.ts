/**
 * A process's memory and processor time, as Linux counts them. Other load hardly changes processor
 * time, so it shows differences between builds where elapsed time is noise.
 */
import { readdir, readFile } from 'node:fs/promises';

const bytesPerKb = 1024;
const nanosecondsPerMs = 1e6;

export type ProcessMemory = Readonly<{ residentBytes: number; peakBytes: number }>;

export async function readProcessMemory(pid: number): Promise<ProcessMemory> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return { residentBytes: field(status, 'VmRSS'), peakBytes: field(status, 'VmHWM') };
}

/** The last known time of each thread of a process, so that threads that have ended still count. */
const seenMs = new Map<number, Map<string, number>>();

/**
 * The time of all threads that were ever seen, since each began. (The sum in `stat` counts
 * hundredths of a second.)
 */
export async function readProcessorMs(pid: number): Promise<number> {
  const seen = seenMs.get(pid) ?? new Map<string, number>();
  seenMs.set(pid, seen);
  const threads = await readdir(`/proc/${pid}/task`);
  await Promise.all(
    threads.map(async (thread) => void seen.set(thread, await readThreadMs(pid, thread).catch(ofEndedThread(seen.get(thread))))),
  );
  return [...seen.values()].reduce((sum, ms) => sum + ms, 0);
}

/** The time of one thread, by default the first, which serves. */
export async function readThreadMs(pid: number, thread = String(pid)): Promise<number> {
  const [nanoseconds] = (await readFile(`/proc/${pid}/task/${thread}/schedstat`, 'utf8')).split(' ');
  return Number(nanoseconds) / nanosecondsPerMs;
}

function ofEndedThread(lastMs = 0): (error: unknown) => number {
  return (error) => {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ESRCH') return lastMs;
    throw error;
  };
}

function field(status: string, name: string): number {
  const kb = new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1];
  if (kb === undefined) throw new Error(`no ${name} in a process's status`);
  return Number(kb) * bytesPerKb;
}
