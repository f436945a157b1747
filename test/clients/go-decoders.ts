/** The decoders of Go (decode/main.go), asked about the cases of test/support/json. */
import { once } from 'node:events';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { askedOfGo, type Verdicts } from '../support/json/go-verdicts.js';
import type { MinefieldCase } from '../support/json/minefield.js';
import { spawn } from '../support/children.js';
import { buildGoProgram } from './installed.js';

const buildMsMax = 600_000;

/** Gives the reason when it cannot be built (no Go, no modules). */
export function buildDecoders(folder: string): Promise<{ program: string } | { why: string }> {
  return buildGoProgram(join(folder, 'decode'), { source: './decode', timeoutMs: buildMsMax });
}

export async function goVerdicts(program: string): Promise<Verdicts> {
  const { values, sent, stored } = askedOfGo();
  return {
    values: await verdictsOn(program, 'value', values),
    sent: await verdictsOn(program, 'object', sent),
    stored: await verdictsOn(program, 'object', stored),
  };
}

async function verdictsOn(
  program: string,
  kind: 'value' | 'object',
  cases: readonly MinefieldCase[],
): Promise<Readonly<Record<string, string>>> {
  const child = spawn(program, [], { stdio: ['pipe', 'pipe', 'inherit'] });
  const ended = once(child, 'exit');
  const answers = text(child.stdout);
  for (const each of cases) child.stdin.write(`${JSON.stringify({ [kind]: Buffer.from(each.text).toString('base64') })}\n`);
  child.stdin.end();
  const lines = (await answers).trim().split('\n');
  const [code] = (await ended) as [number];
  if (code !== 0 || lines.length !== cases.length) throw new Error(`of ${cases.length} cases ${lines.length} were answered, code ${code}`);
  return Object.fromEntries(cases.map(({ name }, i) => [name, refusing(lines[i] ?? '')]));
}

function refusing(line: string): string {
  const { refused } = JSON.parse(line) as { refused: Readonly<Record<string, string>> };
  return Object.keys(refused).toSorted().join(', ');
}
