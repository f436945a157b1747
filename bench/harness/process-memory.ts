/** What a process holds of the machine's memory, as Linux counts it. */
import { readFile } from 'node:fs/promises';

const bytesPerKb = 1024;

export type ProcessMemory = Readonly<{ residentBytes: number; peakBytes: number }>;

export async function readProcessMemory(pid: number): Promise<ProcessMemory> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return { residentBytes: field(status, 'VmRSS'), peakBytes: field(status, 'VmHWM') };
}

function field(status: string, name: string): number {
  const kb = new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1];
  if (kb === undefined) throw new Error(`no ${name} in a process's status`);
  return Number(kb) * bytesPerKb;
}
