/**
 * What a process holds of the machine's memory, and what it took of its processors, as Linux counts it. Processor time
 * hardly depends on what else the machine does, so it tells two builds apart where elapsed time is noise.
 */
import { readFile } from 'node:fs/promises';

const bytesPerKb = 1024;
/** Linux tells processor time in hundredths of a second, whatever its own clock does. */
const msPerTick = 10;
const nanosecondsPerMs = 1e6;
const userTicksField = 11;
const systemTicksField = 12;

export type ProcessMemory = Readonly<{ residentBytes: number; peakBytes: number }>;

export async function readProcessMemory(pid: number): Promise<ProcessMemory> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return { residentBytes: field(status, 'VmRSS'), peakBytes: field(status, 'VmHWM') };
}

/** Of all threads, since the process began. */
export async function readProcessorMs(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
  // The program's name, in parentheses, may hold anything; fields are counted behind it.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[userTicksField]) + Number(fields[systemTicksField])) * msPerTick;
}

/** Of its first thread, in which a server serves. */
export async function readThreadMs(pid: number): Promise<number> {
  const [nanoseconds] = (await readFile(`/proc/${pid}/task/${pid}/schedstat`, 'utf8')).split(' ');
  return Number(nanoseconds) / nanosecondsPerMs;
}

function field(status: string, name: string): number {
  const kb = new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1];
  if (kb === undefined) throw new Error(`no ${name} in a process's status`);
  return Number(kb) * bytesPerKb;
}
