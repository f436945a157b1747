/** A name of a server in a certificate: a DNS name, which may begin with `*.`, or an IP address. */
import { isIP } from 'node:net';

const labels = /^(?:\*\.)?[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)*$/i;
const charactersMax = 253;

/**
 * The name; undefined if the text is not valid. A text that ends in a number can only be an
 * address.
 */
export function parseServingName(text: string): string | undefined {
  if (isIP(text) !== 0) return text.includes('%') ? undefined : text;
  return text.length <= charactersMax && labels.test(text) && !/(?:^|\.)\d+$/.test(text) ? text : undefined;
}

/** The stem of the file names. It has no `*`, because a shell would expand that. */
export function fileStem(name: string): string {
  return name.replace('*', 'wildcard');
}
