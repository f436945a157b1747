/**
 * Finds `promtool`, Prometheus' program that tests rules. If none is installed, Go builds one from
 * the module beside this file, once, into a folder that later runs find. The build leaves out
 * Prometheus' service discovery for clouds.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { projectFile } from '../../support/project.js';
import { buildGoProgramOnce, installed, runProgram, type Ran } from '../installed.js';

type Program = Readonly<{ program: string }>;

export const alertsFile = projectFile('deploy', 'helm', 'strata', 'monitoring', 'alerts.yaml');

const buildMsMax = 590_000;
const runMsMax = 60_000;

export async function promtool(): Promise<Program | { why: string }> {
  if ((await installed('promtool', '--version')) !== undefined) return { program: 'promtool' };
  const module = projectFile('test', 'clients', 'alerts');
  const source = 'github.com/prometheus/prometheus/cmd/promtool';
  return buildGoProgramOnce('promtool-0.316.0', { source, module, tags: ['remove_all_sd'], timeoutMs: buildMsMax });
}

export function checkRules({ program }: Program): Promise<Ran> {
  return runProgram(program, ['check', 'rules', alertsFile], { timeoutMs: runMsMax });
}

/** `tests`: in the format of `promtool test rules`. */
export async function testRules({ program }: Program, tests: readonly unknown[]): Promise<Ran> {
  const folder = await mkdtemp(join(tmpdir(), 'strata-alerts-'));
  try {
    const file = join(folder, 'tests.yaml');
    await writeFile(file, JSON.stringify({ rule_files: [alertsFile], evaluation_interval: '1m', tests }));
    return await runProgram(program, ['test', 'rules', file], { timeoutMs: runMsMax });
  } finally {
    await rm(folder, { recursive: true });
  }
}
