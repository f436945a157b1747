/**
 * The value of a plain YAML scalar, as sigs.k8s.io/yaml (goyaml v2) reads it, because
 * kube-apiserver reads `application/yaml` with it. It is YAML 1.2's core schema plus, from 1.1,
 * `yes`, `on`, `0b11`, `1_000` and octal `017`. Dates are strings.
 *
 * Numbers lose nothing: a decimal keeps its digits, and only its form changes to JSON's (`+5` is 5,
 * `.5` is 0.5).
 */
import type { JsonTree } from './json-tree.js';

const words: ReadonlyMap<string, null | boolean> = new Map([
  ...spellings(['true', 'yes', 'on', 'y'], true),
  ...spellings(['false', 'no', 'off', 'n'], false),
  ...spellings(['null', '~', ''], null),
]);
const noJsonPattern = /^(?:[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$/;
const decimalPattern = /^([-+]?)([0-9]*)(?:\.([0-9]*))?([eE][-+]?[0-9]+)?$/;
const radixPattern = /^([-+]?)(0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO]?[0-7]+)$/;
const uint64Max = 2n ** 64n - 1n;
const radixCharactersMax = 80;

/** Undefined for values that JSON does not have: infinity, not-a-number. */
export function resolvePlain(text: string): JsonTree | undefined {
  const word = words.get(text);
  if (word !== undefined) return word;
  if (noJsonPattern.test(text)) return undefined;
  if (!/^[-+.0-9]/.test(text)) return text;

  const digits = text.startsWith('.') ? text : text.replaceAll('_', '');
  const number = radixNumber(digits) ?? decimalNumber(digits);
  return number === undefined ? text : { number };
}

const plainPattern = /^[A-Za-z_/](?:[-\w./@+]|:(?=[\w/]))*(?: (?:[-\w./@+(),]|:(?=[\w/]))+)*$/;
const plainCharactersMax = 200;
const unprintable = /[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]/g;

/** A string that reads back as itself: plain if it is unambiguous, else quoted as in JSON. */
export function formatScalar(text: string): string {
  // Bounded, because the pattern uses stack space for each character.
  const plain = text.length <= plainCharactersMax && plainPattern.test(text) && resolvePlain(text) === text;
  return plain ? text : escapeUnprintable(JSON.stringify(text));
}

/** JSON text is YAML except for a few characters, which can only be in its strings. */
export function escapeUnprintable(json: string): string {
  return json.replaceAll(unprintable, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

function radixNumber(text: string): string | undefined {
  if (text.length > radixCharactersMax) return undefined;
  const [, sign, literal] = radixPattern.exec(text) ?? [];
  if (literal === undefined) return undefined;
  const value = BigInt(/^0[0-7]/.test(literal) ? `0o${literal.slice(1)}` : literal);
  if (value > uint64Max) return undefined;
  return sign === '-' ? String(-value) : String(value);
}

function decimalNumber(text: string): string | undefined {
  const [, sign, whole = '', fraction = '', exponent = ''] = decimalPattern.exec(text) ?? [];
  if (sign === undefined || (whole === '' && fraction === '')) return undefined;
  const integer = whole.replace(/^0+(?=[0-9])/, '');
  return `${sign === '-' ? '-' : ''}${integer === '' ? '0' : integer}${fraction === '' ? '' : `.${fraction}`}${exponent}`;
}

/** goyaml accepts `word`, `Word` and `WORD`, but no other mix. */
function spellings<T>(texts: readonly string[], value: T): [string, T][] {
  return texts.flatMap((text) =>
    [text, text.charAt(0).toUpperCase() + text.slice(1), text.toUpperCase()].map((spelling): [string, T] => [spelling, value]),
  );
}
