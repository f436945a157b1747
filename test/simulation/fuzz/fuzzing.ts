/**
 * Shared by the fuzzers of this folder. A run takes its inputs from a seed that it prints; these
 * variables lengthen or repeat a run:
 *
 *   TEST_FUZZ_SEED=7 TEST_FUZZ_RUNS=1000000 npx ava build/test/simulation/fuzz/*.test.js
 *
 * fast-check generates the inputs, or a mutator cuts, repeats, swaps and splices entries of a
 * corpus. A corpus (`corpus/*.txt`) has one entry a line, as a JSON string if it begins with '"'.
 * Every input that ever failed is in the corpus and has a test of its own.
 */
import { readFileSync } from 'node:fs';
import type { ExecutionContext } from 'ava';
import fc from 'fast-check';
import { projectFile } from '../../support/project.js';
import { rounds } from '../../support/sizes.js';

const runsByDefault = 1_000;
const timedBytes = 10_000;
const timedRounds = 4;

export type FuzzOptions<Input> = Readonly<{
  /** Share of the requested number of inputs; a slow target gets fewer. */
  share?: number;
  /** Time limit for 10 kB; a shorter input gets as much. */
  msPer10kB: number;
  /** Size of an input in bytes. */
  sizeOf: (input: Input) => number;
}>;

/**
 * Checks that `law` holds for many inputs, that each stays within its time, and that none changes
 * Object.prototype.
 */
export function fuzz<Input>(
  t: ExecutionContext,
  inputs: fc.Arbitrary<Input>,
  law: (input: Input) => void,
  options: FuzzOptions<Input>,
): void {
  const { share = 1, msPer10kB, sizeOf } = options;
  const seed = Number(process.env['TEST_FUZZ_SEED'] ?? Math.trunc(Math.random() * 2 ** 31));
  const numRuns = Math.max(1, Math.round(Number(process.env['TEST_FUZZ_RUNS'] ?? rounds(runsByDefault)) * share));
  t.log(`seed ${seed}, ${numRuns} inputs`);
  const before = prototype();

  const property = fc.property(inputs, (input) => {
    const msMax = msPer10kB * Math.max(1, sizeOf(input) / timedBytes);
    const took = shortestMs(() => law(input), msMax);
    if (took > msMax) throw new Error(`it took ${took} ms and may take ${msMax}`);
    if (prototype() !== before) throw new Error('Object.prototype has changed');
  });
  const result = fc.check(property, { seed, numRuns });

  t.false(result.failed, result.failed ? `${String(result.errorInstance)}\n${fc.defaultReportMessage(result)}` : '');
}

export function corpus(name: string): readonly string[] {
  return readFileSync(projectFile('test', 'simulation', 'fuzz', 'corpus', `${name}.txt`), 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => (line.startsWith('"') ? (JSON.parse(line) as string) : line));
}

/** The entries unchanged and mutated. */
export function mutated(entries: readonly string[]): fc.Arbitrary<string> {
  return mutatedBytes(entries.map((entry) => Buffer.from(entry))).map((bytes) => bytes.toString());
}

export function mutatedBytes(entries: readonly Uint8Array[]): fc.Arbitrary<Buffer> {
  const entry = fc.constantFrom(...entries);
  const at = fc.double({ min: 0, max: 1, noNaN: true });
  const change = fc.oneof(
    fc.record({ kind: fc.constant('set' as const), at, byte: fc.integer({ min: 0, max: 255 }) }),
    fc.record({
      kind: fc.constant('insert' as const),
      at,
      byte: fc.oneof(fc.constantFrom(...interesting), fc.integer({ min: 0, max: 255 })),
    }),
    fc.record({ kind: fc.constant('remove' as const), at, to: at }),
    fc.record({ kind: fc.constant('repeat' as const), at, to: at, times: fc.integer({ min: 1, max: 30 }) }),
    fc.record({ kind: fc.constant('splice' as const), at, other: entry, from: at }),
  );
  // One change most of the time, because an input with several faults is refused for the first.
  const changes = fc.oneof({ weight: 3, arbitrary: fc.tuple(change) }, { weight: 1, arbitrary: fc.array(change, { maxLength: 6 }) });
  return fc.tuple(entry, changes).map(([start, made]) => {
    let bytes = Buffer.from(start);
    for (const each of made) {
      const place = Math.trunc(each.at * bytes.length);
      const [head, tail] = [bytes.subarray(0, place), bytes.subarray(place)];
      if (each.kind === 'set') bytes = Buffer.concat([head, Buffer.of(each.byte), tail.subarray(1)]);
      else if (each.kind === 'insert') bytes = Buffer.concat([head, Buffer.of(each.byte), tail]);
      else if (each.kind === 'splice')
        bytes = Buffer.concat([head, Buffer.from(each.other).subarray(Math.trunc(each.from * each.other.length))]);
      else {
        const part = tail.subarray(0, Math.trunc(each.to * tail.length));
        const again = each.kind === 'remove' ? [] : Array.from({ length: each.times + 1 }, () => part);
        bytes = Buffer.concat([head, ...again, tail.subarray(part.length)]);
      }
      bytes = bytes.subarray(0, inputBytesMax);
    }
    return bytes;
  });
}

const inputBytesMax = 20_000;
const interesting = [...Buffer.from('"\'\\/{}[]:,&*!|>%@`#?-+.0189eEnt \t\n\r\0=()<>;~$_')];

/** Repeats the task only while it is too slow, because other processes use the machine too. */
function shortestMs(task: () => void, enoughMs: number): number {
  let shortest = Infinity;
  for (let round = 0; round < timedRounds && shortest > enoughMs; round++) {
    const begun = performance.now();
    task();
    shortest = Math.min(shortest, performance.now() - begun);
  }
  return shortest;
}

function prototype(): string {
  return JSON.stringify(Reflect.ownKeys(Object.prototype).map(String));
}
