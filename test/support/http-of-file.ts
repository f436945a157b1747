/** Chooses the HTTP version that a file of tests speaks to its servers, unless the file chooses. */
import { createHash } from 'node:crypto';
import type { ImplementationFn } from 'ava';

export type Http = '1' | '2';

/**
 * `1` and `2` choose for all files. `by file` depends on the file's name and the commit, so that
 * later commits try the other version; `other` reverses that choice.
 */
const { TEST_HTTP: asked = '1', TEST_COMMIT: commit = '' } = process.env;
let spoken: Http = asked === '2' ? '2' : '1';

/** The version that the running test speaks if it names none. */
export function spokenHttp(): Http {
  return spoken;
}

/** Returns the test such that it speaks the version of this file. */
export function overHttpOf(file: string, test: ImplementationFn<unknown[]>): ImplementationFn<unknown[]> {
  const http = httpOfFile(file, { asked, commit });
  return (t, ...args) => {
    spoken = http;
    return test(t, ...args);
  };
}

/** `file` is relative to the build, with '/'. */
export function httpOfFile(file: string, { asked, commit }: Readonly<{ asked: string; commit: string }>): Http {
  if (asked === '1' || asked === '2') return asked;
  const isSecond = (createHash('sha256').update(`${commit} ${file}`).digest()[0]! & 1) === 1;
  return isSecond === (asked === 'other') ? '1' : '2';
}
