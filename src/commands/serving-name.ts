/** A name under which a server is reached, as a certificate holds it: a DNS name, perhaps with one `*.` in front, or an IP address. */
import { isIP } from 'node:net';

const labels = /^(?:\*\.)?[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)*$/i;
const charactersMax = 253;

/** The name, or undefined when the text is not one. A text that ends in a number can only be an address. */
export function parseServingName(text: string): string | undefined {
  if (isIP(text) !== 0) return text.includes('%') ? undefined : text;
  return text.length <= charactersMax && labels.test(text) && !/(?:^|\.)\d+$/.test(text) ? text : undefined;
}

/** The stem of its files: a shell would expand a `*` to all of them. */
export function fileStem(name: string): string {
  return name.replace('*', 'wildcard');
}
