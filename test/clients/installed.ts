/** Finds out whether a program that a test needs is installed, and runs programs to their end. */
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, rename } from 'node:fs/promises';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { spawn } from '../support/children.js';
import { projectFile } from '../support/project.js';

const run = promisify(execFile);
const outputBytesMax = 64 * 1024 * 1024;

export type Ran = Readonly<{ code: number; stdout: string; stderr: string }>;

export type RunOptions = Readonly<{ cwd?: string; environment?: Readonly<Record<string, string>>; timeoutMs: number }>;

/** The first line of the program's version; undefined if it is not installed. */
export async function installed(program: string, ...flags: readonly string[]): Promise<string | undefined> {
  const { code, stdout } = await runProgram(program, flags, { timeoutMs: 10_000 });
  return code === 0 ? (stdout.split('\n')[0] ?? '') : undefined;
}

/** Runs a program to its end; an exit code other than 0 is a result, not an error. */
export async function runProgram(program: string, args: readonly string[], { cwd, environment = {}, timeoutMs }: RunOptions): Promise<Ran> {
  try {
    const { stdout, stderr } = await run(program, [...args], {
      ...(cwd === undefined ? {} : { cwd }),
      env: { ...process.env, ...environment },
      timeout: timeoutMs,
      maxBuffer: outputBytesMax,
    });
    return { code: 0, stdout, stderr };
  } catch (error) {
    const { code, stdout = '', stderr = String(error) } = error as { code?: unknown; stdout?: string; stderr?: string };
    return { code: typeof code === 'number' ? code : -1, stdout, stderr };
  }
}

export type GoProgram = Readonly<{ source: string; module?: string; tags?: readonly string[]; timeoutMs: number }>;

/**
 * Builds a program of a Go module, by default the one in this folder. Returns the reason if that
 * fails or Go is missing.
 */
export async function buildGoProgram(
  program: string,
  { source, module = projectFile('test', 'clients'), tags = [], timeoutMs }: GoProgram,
): Promise<{ program: string } | { why: string }> {
  if ((await installed('go', 'version')) === undefined) return { why: 'go is not installed' };
  const { code, stderr } = await runProgram('go', ['build', '-tags', tags.join(','), '-o', program, source], {
    cwd: module,
    environment: { CGO_ENABLED: '0' },
    timeoutMs,
  });
  return code === 0 ? { program } : { why: `${source} cannot be built: ${stderr.slice(-1_000)}` };
}

/**
 * Builds the program once, into a folder of this user that later runs find. `name` must include the
 * version.
 */
export async function buildGoProgramOnce(name: string, options: GoProgram): Promise<{ program: string } | { why: string }> {
  const folder = join(tmpdir(), `strata-go-${userInfo().uid}`);
  const program = join(folder, name);
  if (existsSync(program)) return { program };
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const built = await buildGoProgram(`${program}.${process.pid}`, options);
  if ('why' in built) return built;
  await rename(built.program, program);
  return { program };
}

/**
 * Runs a program that reads each question as a line of JSON and writes each answer as one. Rejects
 * if it fails or answers too few.
 */
export async function askInLines(program: string, questions: readonly unknown[]): Promise<readonly unknown[]> {
  const child = spawn(program, [], { stdio: ['pipe', 'pipe', 'inherit'] });
  const ended = once(child, 'exit');
  const answers = text(child.stdout);
  for (const question of questions) child.stdin.write(`${JSON.stringify(question)}\n`);
  child.stdin.end();
  const lines = (await answers).trim().split('\n');
  const [code] = (await ended) as [number];
  if (code !== 0 || lines.length !== questions.length)
    throw new Error(`of ${questions.length} questions ${lines.length} were answered, code ${code}`);
  return lines.map((line) => JSON.parse(line) as unknown);
}
