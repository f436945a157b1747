/**
 * Stops a process for a while. `kill` returns before SIGSTOP takes effect: the kernel stops each
 * thread when it next runs, which a busy machine delays. Until then a thread may still answer a
 * request.
 *
 *   kill(SIGSTOP) ──▶ threads stop one by one ──▶ all are in state T: `freeze` resolves
 *
 * Bound: if not all threads stop within stopMsMax, the process continues and `freeze` rejects.
 */
import { readdir, readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';

const stopMsMax = 10_000;

/** Resolves once no thread of the process runs; at once where there is no /proc. */
export async function freeze(pid: number): Promise<void> {
  signal(pid, 'SIGSTOP');
  if (process.platform !== 'linux') return;
  for (const untilMs = performance.now() + stopMsMax; !(await isStopped(pid)); await sleep(1)) {
    if (performance.now() < untilMs) continue;
    thaw(pid);
    throw new Error(`the process ${pid} was sent SIGSTOP ${stopMsMax} ms ago and still runs`);
  }
}

/** Lets the process continue: SIGCONT takes effect as soon as it is sent. */
export function thaw(pid: number): void {
  signal(pid, 'SIGCONT');
}

/** `kill` with pid 0 signals every process of our own group: it would thaw what others froze. */
function signal(pid: number, name: 'SIGSTOP' | 'SIGCONT'): void {
  if (pid <= 0) throw new Error('the process does not run');
  process.kill(pid, name);
}

/**
 * Whether all threads are stopped: then none can start another. Rejects when the process is gone.
 */
async function isStopped(pid: number): Promise<boolean> {
  const threads = await readdir(`/proc/${pid}/task`);
  const states = await Promise.all(threads.map((thread) => stateOf(pid, thread)));
  return states.every((state) => state === undefined || state === 'T');
}

/**
 * The state field of proc_pid_stat(5), which follows the name; the name may contain anything.
 * Undefined when the thread has ended.
 */
async function stateOf(pid: number, thread: string): Promise<string | undefined> {
  const stat = await readFile(`/proc/${pid}/task/${thread}/stat`, 'utf8').catch(() => '');
  return stat.slice(stat.lastIndexOf(')') + 2)[0];
}
