/**
 * Kubernetes' rules for names, with Kubernetes' messages. Each function returns the list of flaws,
 * empty if the name is valid.
 *
 * A subdomain is tested label by label, because one pattern over all of it would need a
 * backtracking stack as long as the text.
 */
import { Buffer } from 'node:buffer';
const subdomainBytesMax = 253;
const dnsLabelBytesMax = 63;

const labelFormat = '[a-z0-9]([-a-z0-9]*[a-z0-9])?';
const labelPattern = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?$/;
const labelFlaw =
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an " +
  `alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '${labelFormat}')`;
const subdomainFlaw =
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an " +
  `alphanumeric character (e.g. 'example.com', regex used for validation is '${labelFormat}(\\.${labelFormat})*')`;

/**
 * Checks the names of most types. Kubernetes says "characters" for names and "bytes" for label key
 * prefixes.
 */
export function dnsSubdomainFlaws(name: string, unit: 'characters' | 'bytes' = 'characters'): readonly string[] {
  const flaws: string[] = [];
  if (Buffer.byteLength(name) > subdomainBytesMax) flaws.push(`must be no more than ${subdomainBytesMax} ${unit}`);
  if (!isSubdomain(name)) flaws.push(subdomainFlaw);
  return flaws;
}

export function dnsLabelFlaws(name: string): readonly string[] {
  const flaws: string[] = [];
  if (Buffer.byteLength(name) > dnsLabelBytesMax) flaws.push(`must be no more than ${dnsLabelBytesMax} characters`);
  if (!labelPattern.test(name)) flaws.push(isSubdomain(name) ? 'must not contain dots' : labelFlaw);
  return flaws;
}

/** RBAC objects may have any name that can be a segment of a URL path. */
export function pathSegmentFlaws(name: string): readonly string[] {
  if (name === '.' || name === '..') return [`may not be '${name}'`];
  return ['/', '%'].filter((forbidden) => name.includes(forbidden)).map((forbidden) => `may not contain '${forbidden}'`);
}

function isSubdomain(name: string): boolean {
  return name.split('.').every((label) => labelPattern.test(label));
}
