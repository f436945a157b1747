/**
 * A process's memory and processor time, as Linux counts them. Processor time
 * hardly depends on other load of the machine, so it shows the difference of two builds where elapsed time is noise.
 */
import { readFile } from 'node:fs/promises';

const bytesPerKb = 1024;
/** Linux gives processor time in hundredths of a second, whatever its own clock does. */
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
  // The program's name, in parentheses, may hold anything, so fields are counted after it.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[userTicksField]) + Number(fields[systemTicksField])) * msPerTick;
}

/** Of its first thread, which serves. */
export async function readThreadMs(pid: number): Promise<number> {
  const [nanoseconds] = (await readFile(`/proc/${pid}/task/${pid}/schedstat`, 'utf8')).split(' ');
  return Number(nanoseconds) / nanosecondsPerMs;
}

function field(status: string, name: string): number {
  const kb = new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1];
  if (kb === undefined) throw new Error(`no ${name} in a process's status`);
  return Number(kb) * bytesPerKb;
}
