/** Processes of a live kcp, seen through their port, their log and the file with their pid. */
import { open, readFile } from 'node:fs/promises';
import { request } from 'node:https';

/** Whether an API server answers /readyz with 200 to an anonymous client. */
export function isReady(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const asked = request({ host: '127.0.0.1', port, path: '/readyz', rejectUnauthorized: false }, (answer) => {
      answer.resume();
      resolve(answer.statusCode === 200);
    });
    asked.on('error', () => resolve(false)).end();
  });
}

/** The part of a log from this byte on. */
export async function readFrom(path: string, from: number): Promise<string> {
  const file = await open(path);
  try {
    const { size } = await file.stat();
    const bytes = Buffer.alloc(Math.max(0, size - from));
    await file.read(bytes, 0, bytes.length, from);
    return bytes.toString('utf8');
  } finally {
    await file.close();
  }
}

/** Sends SIGKILL to the process whose pid is in the file, if there is one. */
export async function stop(pidFile: string): Promise<void> {
  const pid = await pidIn(pidFile).catch(() => 0);
  if (pid === 0) return;
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // The process has already ended.
  }
}

export async function pidIn(file: string): Promise<number> {
  return Number(await readFile(file, 'utf8'));
}
