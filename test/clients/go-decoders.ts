/** Asks Go's decoders (decode/main.go) about the cases of test/support/json. */
import { join } from 'node:path';
import { askedOfGo, type Verdicts } from '../support/json/go-verdicts.js';
import type { MinefieldCase } from '../support/json/minefield.js';
import { askInLines, buildGoProgram } from './installed.js';

const buildMsMax = 600_000;

/** Returns the reason if the program cannot be built (no Go, no modules). */
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
  const answers = await askInLines(
    program,
    cases.map((each) => ({ [kind]: Buffer.from(each.text).toString('base64') })),
  );
  return Object.fromEntries(cases.map(({ name }, i) => [name, refusing(answers[i])]));
}

function refusing(answer: unknown): string {
  const { refused } = answer as { refused: Readonly<Record<string, string>> };
  return Object.keys(refused).toSorted().join(', ');
}
