/** A name under which a server is reached, as a certificate holds it: a DNS name, perhaps with one `*.` in front, or an IP address. */
import { isIP } from 'node:net';

const labels = /^(?:\*\.)?[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)*$/i;
const charactersMax = 253;

/** The name, or undefined when the text is none. What ends in a number can only be an address. */
export function parseServingName(text: string): string | undefined {
  if (isIP(text) !== 0) return text.includes('%') ? undefined : text;
  return text.length <= charactersMax && labels.test(text) && !/(?:^|\.)\d+$/.test(text) ? text : undefined;
}

/** What its files are called: a `*` would be taken for all of them. */
export function fileStem(name: string): string {
  return name.replace('*', 'wildcard');
}
