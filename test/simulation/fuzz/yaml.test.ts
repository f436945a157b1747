/**
 * Any text is read or refused. What the reader returns is read back equal after it was written as
 * YAML.
 */
import { test } from '../../support/test.js';
import fc from 'fast-check';
import { equalJson } from '../../../src/json/json-tree.js';
import { parseJson } from '../../../src/json/json-parser.js';
import { mustParse } from '../../../src/domain/parsed.js';
import { formatYaml, parseYaml } from '../../../src/json/yaml.js';
import { anyCharacter } from '../../support/any-character.js';
import { corpus, fuzz, mutated } from './fuzzing.js';

const sizeOf = (text: string): number => text.length;

test('any text is parsed as YAML, and equal after it is written and parsed again, or refused', (t) => {
  const law = (text: string): void => {
    const read = parseYaml(text);
    if (read.kind === 'refused') {
      if (read.refusal.reason !== 'BadRequest') throw new Error(read.refusal.reason);
      return;
    }
    const written = formatYaml(read.value);
    const again = parseYaml(written);
    if (again.kind === 'refused' || !equalJson(again.value, read.value)) throw new Error(`read otherwise: ${written}`);
  };

  // YAML is read in a thread of its own, so it may take its time: the slowest input took 18 µs a
  // byte.
  fuzz(t, fc.oneof(mutated(corpus('yaml')), fc.stringMatching(/^[-a-c:?&*!|>%@'"{}[\], #\n\t~<=.0-9x]*$/)), law, {
    sizeOf,
    msPer10kB: 400,
  });
});

test('JSON is written as YAML and read back as it was', (t) => {
  const law = (text: string): void => {
    const tree = mustParse(parseJson(text));
    const again = parseYaml(formatYaml(tree));
    if (again.kind === 'refused' || !equalJson(again.value, tree)) throw new Error(formatYaml(tree));
  };

  fuzz(t, fc.json({ maxDepth: 6, stringUnit: anyCharacter }), law, { sizeOf, msPer10kB: 400 });
});
