/**
 * Any text is parsed or refused. A parsed selector selects the same objects as a matcher that
 * evaluates each requirement separately.
 */
import { test } from '../../support/test.js';
import fc from 'fast-check';
import { parseInt64 } from '../../../src/domain/syntax/label-rules.js';
import type { Requirement } from '../../../src/domain/syntax/label-selector.js';
import { formatSelector, meetsSelector, parseFieldSelector, parseLabelSelector } from '../../../src/domain/syntax/selector.js';
import { corpus, fuzz, mutated } from './fuzzing.js';

const words = ['a', 'b', 'd', 'g', 'o', 'p', 'kcp.io/path', 'in', 'x', '__proto__', 'constructor', 'toString'];
const labels = fc.dictionary(fc.constantFrom(...words), fc.constantFrom('', 'b', 'c', '0', '1', '2', '-3', 'in', '9223372036854775807'));
const texts = fc.oneof(
  mutated(corpus('selectors')),
  fc
    .array(fc.constantFrom(...words, ' in ', ' notin ', '(', ')', ',', '!', '=', '==', '!=', '<', '>', '1', ' '), { maxLength: 30 })
    .map((parts) => parts.join('')),
);
const sizeOf = ([text]: readonly [string, unknown]): number => text.length;

test('any text is refused, or parsed as a label selector that matches what its requirements match one by one', (t) => {
  const law = ([text, record]: readonly [string, Record<string, string>]): void => {
    const result = parseLabelSelector(text);
    if (result.kind === 'refused') {
      if (result.refusal.reason !== 'BadRequest') throw new Error(result.refusal.reason);
      return;
    }
    const selector = { labels: result.value, fields: [] };
    const object = { name: 'one', namespace: '', labels: new Map(Object.entries(record)) };
    const expected = result.value.every((requirement) => meets(requirement, object.labels.get(requirement.key)));
    if (meetsSelector(selector, object) !== expected) throw new Error(`it is ${String(expected)} that it is selected`);
    const written = formatSelector(selector);
    const again = parseLabelSelector(written.slice(0, -1));
    if (again.kind === 'refused' || formatSelector({ labels: again.value, fields: [] }) !== written)
      throw new Error(`read otherwise: ${written}`);
  };

  fuzz(t, fc.tuple(texts, labels), law, { share: 3, sizeOf, msPer10kB: 60 });
});

test('any text is refused, or parsed as a field selector that matches what its requirements match one by one', (t) => {
  const law = ([text, name]: readonly [string, string]): void => {
    const result = parseFieldSelector(text);
    if (result.kind === 'refused') {
      if (result.refusal.reason !== 'BadRequest') throw new Error(result.refusal.reason);
      return;
    }
    const expected = result.value.every(
      ({ field, kind, value }) => ((field === 'metadata.name' ? name : '') === value) === (kind === 'is'),
    );
    const selector = { labels: [], fields: result.value };
    if (meetsSelector(selector, { name, namespace: '', labels: new Map() }) !== expected) throw new Error('it selects something else');
    const written = formatSelector(selector);
    const again = parseFieldSelector(written.slice(1));
    if (again.kind === 'refused' || formatSelector({ labels: [], fields: again.value }) !== written)
      throw new Error(`read otherwise: ${written}`);
  };

  fuzz(t, fc.tuple(texts, fc.constantFrom('one', 'a', 'b', '')), law, { share: 2, sizeOf, msPer10kB: 40 });
});

function meets(requirement: Requirement, value: string | undefined): boolean {
  switch (requirement.kind) {
    case 'exists':
      return value !== undefined;
    case 'absent':
      return value === undefined;
    case 'in':
      return value !== undefined && requirement.values.includes(value);
    case 'notin':
      return value === undefined || !requirement.values.includes(value);
    default: {
      const number = value === undefined ? undefined : parseInt64(value);
      if (number === undefined) return false;
      return requirement.kind === 'above' ? number > requirement.bound : number < requirement.bound;
    }
  }
}
