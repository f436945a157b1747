/**
 * Kubernetes' rules for label keys, label values and annotations, with Kubernetes' messages.
 *
 * Each function returns the list of flaws, empty if the input is valid. The flaws become the causes
 * of one 422. Lengths are in bytes, as in Go.
 */
import { Buffer } from 'node:buffer';
import { invalidValue, tooLong, type Cause } from '../errors.js';
import { dnsSubdomainFlaws } from './name-syntax.js';

const labelBytesMax = 63;
const annotationBytesMax = 262_144;
const causesMax = 100;

const keyFormat = '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]';
const keyPattern = /^(?:[A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$/;
const keyFlaw =
  "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character " +
  `(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '${keyFormat}')`;
const valueFlaw =
  "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an " +
  `alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(${keyFormat})?')`;

/** Checks a qualified name: `name` or `dns.subdomain/name`. Most keys pass the first, fast test. */
export function labelKeyFlaws(key: string): readonly string[] {
  if (key.length <= labelBytesMax && keyPattern.test(key)) return [];
  const parts = key.split('/');
  if (parts.length > 2) return [`a valid label key ${keyFlaw} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`];

  const name = parts.pop() as string;
  const flaws = prefixFlaws(parts[0]);
  if (name === '') flaws.push('name part must be non-empty');
  else if (Buffer.byteLength(name) > labelBytesMax) flaws.push(`name part must be no more than ${labelBytesMax} bytes`);
  if (!keyPattern.test(name)) flaws.push(`name part ${keyFlaw}`);
  return flaws;
}

export function labelValueFlaws(value: string): readonly string[] {
  if (value === '' || (value.length <= labelBytesMax && keyPattern.test(value))) return [];
  const flaws: string[] = [];
  if (Buffer.byteLength(value) > labelBytesMax) flaws.push(`must be no more than ${labelBytesMax} bytes`);
  if (value !== '' && !keyPattern.test(value)) flaws.push(valueFlaw);
  return flaws;
}

export function labelCauses(labels: ReadonlyMap<string, string>): readonly Cause[] {
  return firstCauses(labels, (key, value) => [
    ...labelKeyFlaws(key).map((flaw) => invalidValue('metadata.labels', key, flaw)),
    ...labelValueFlaws(value).map((flaw) => invalidValue('metadata.labels', value, flaw)),
  ]);
}

/**
 * Annotation keys follow the rules of label keys, but may have upper case in the prefix. Values may
 * be anything; the total size of the annotations is bounded. `addedBytesMax`: how much of it caches
 * may have added.
 */
export function annotationCauses(annotations: ReadonlyMap<string, string>, addedBytesMax = 0): readonly Cause[] {
  const causes = firstCauses(annotations, (key) =>
    labelKeyFlaws(key.toLowerCase()).map((flaw) => invalidValue('metadata.annotations', key, flaw)),
  );
  let bytes = 0;
  for (const [key, value] of annotations) bytes += Buffer.byteLength(key) + Buffer.byteLength(value);
  return bytes <= annotationBytesMax + addedBytesMax ? causes : [...causes, tooLong('metadata.annotations', annotationBytesMax)];
}

/**
 * Stops at `causesMax`: nobody reads more, and thousands would take longer to format than the
 * object to parse.
 */
function firstCauses(texts: ReadonlyMap<string, string>, causesOf: (key: string, value: string) => readonly Cause[]): readonly Cause[] {
  const causes: Cause[] = [];
  for (const [key, value] of texts) {
    causes.push(...causesOf(key, value));
    if (causes.length >= causesMax) break;
  }
  return causes;
}

function prefixFlaws(prefix: string | undefined): string[] {
  if (prefix === undefined) return [];
  if (prefix === '') return ['prefix part must be non-empty'];
  return dnsSubdomainFlaws(prefix, 'bytes').map((flaw) => `prefix part ${flaw}`);
}
