/**
 * The static token file of kube-apiserver: one line of CSV for each token,
 * `token,user,uid,"group,group"`. Pure.
 */
import { readCsvRecord } from '../domain/base/csv-record.js';
import { isHeaderValue } from '../domain/base/http-header.js';
import type { TokenReader, TokenUser } from './token-user.js';

export type TokenFile = Readonly<{ kind: 'read'; tokens: ReadonlyMap<string, TokenUser> }> | Readonly<{ kind: 'wrong'; problem: string }>;

const columnsMin = 3;

/**
 * If a token occurs twice, its last line counts. The uid is parsed and dropped, because a proxy
 * passes no uid to servers.
 */
export function parseTokenFile(text: string): TokenFile {
  const tokens = new Map<string, TokenUser>();
  for (const [index, line] of text.split(/\r?\n|\r$/).entries()) {
    if (line === '') continue;
    const record = readCsvRecord(line);
    if (record === undefined) return { kind: 'wrong', problem: `line ${index + 1} is not CSV` };
    if (record.length < columnsMin) return { kind: 'wrong', problem: `line ${index + 1} needs a token, a user and a uid` };
    const [token = '', user = '', , groups] = record;
    if (token === '' || user === '') return { kind: 'wrong', problem: `line ${index + 1} has an empty token or user` };
    const names = [user, ...(groups ?? '').split(',').filter((group) => group !== '')];
    const odd = names.find((name) => !isHeaderValue(name));
    if (odd !== undefined)
      return { kind: 'wrong', problem: `line ${index + 1} has a name that an HTTP header cannot carry: ${JSON.stringify(odd)}` };
    tokens.set(token, { user, groups: names.slice(1), extra: {} });
  }
  return { kind: 'read', tokens };
}

export function tokenFileReader(tokens: ReadonlyMap<string, TokenUser>): TokenReader {
  return { read: async (token) => tokens.get(token) };
}
