/**
 * Processes that stand still for a while. `kill` returns before SIGSTOP is in force: the kernel stops each thread when it next runs, and a busy machine
 * lets it run late. A thread may answer a request until then.
 *
 *   kill(SIGSTOP) ──▶ threads run on, one by one they stop ──▶ all are in state T: `freeze` resolves
 *
 * Bound: all threads stop within stopMsMax, else the process goes on and `freeze` rejects.
 */
import { readdir, readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';

const stopMsMax = 10_000;

/** Resolves once no thread of the process runs any more; where there is no /proc to say so, at once. */
export async function freeze(pid: number): Promise<void> {
  // To `kill`, 0 is every process of our own group.
  if (pid <= 0) throw new Error('the process does not run');
  process.kill(pid, 'SIGSTOP');
  if (process.platform !== 'linux') return;
  for (const untilMs = performance.now() + stopMsMax; !(await isStopped(pid)); await sleep(1)) {
    if (performance.now() < untilMs) continue;
    thaw(pid);
    throw new Error(`the process ${pid} was sent SIGSTOP ${stopMsMax} ms ago and still runs`);
  }
}

/** The process goes on: SIGCONT is in force once it is sent. */
export function thaw(pid: number): void {
  process.kill(pid, 'SIGCONT');
}

/** Once all threads are, none is left that could start another. Rejects when the process is gone. */
async function isStopped(pid: number): Promise<boolean> {
  const threads = await readdir(`/proc/${pid}/task`);
  const states = await Promise.all(threads.map((thread) => stateOf(pid, thread)));
  return states.every((state) => state === undefined || state === 'T');
}

/** As proc_pid_stat(5) has it, behind the name, which may contain anything; undefined when the thread has ended meanwhile. */
async function stateOf(pid: number, thread: string): Promise<string | undefined> {
  const stat = await readFile(`/proc/${pid}/task/${thread}/stat`, 'utf8').catch(() => '');
  return stat.slice(stat.lastIndexOf(')') + 2)[0];
}
