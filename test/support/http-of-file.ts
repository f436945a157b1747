/** Chooses the HTTP version that a file of tests speaks to its servers, unless the file chooses. */
import { createHash } from 'node:crypto';

export type Http = '1' | '2';

/**
 * The choice depends on the file's name and the commit, so that later commits try the other
 * version. `asked` is the value of TEST_HTTP: 1 or 2 chooses for all files, `other` reverses each
 * choice. `file` is relative to the build, with '/'.
 */
export function httpOfFile(file: string, { asked = '', commit }: { asked?: string; commit: string }): Http {
  if (asked === '1' || asked === '2') return asked;
  const isSecond = (createHash('sha256').update(`${commit} ${file}`).digest()[0]! & 1) === 1;
  return isSecond === (asked === 'other') ? '1' : '2';
}
