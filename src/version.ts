/** The release, as package.json says, for the command line and the server that it starts. */
import { readFileSync } from 'node:fs';

export function version(): string {
  const { version: text } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as { version: string };
  return text;
}
