/** A file of tokens that do not change, as kube-apiserver has it: a line of CSV for each, `token,user,uid,"group,group"`. Pure. */
import { readCsvRecord } from '../domain/csv-record.js';
import { isHeaderValue } from '../domain/header-value.js';
import type { TokenReader, TokenUser } from './token-user.js';

export type TokenFile = Readonly<{ kind: 'read'; tokens: ReadonlyMap<string, TokenUser> }> | Readonly<{ kind: 'wrong'; problem: string }>;

const columnsMin = 3;

/** Of a token that is there twice, its last line counts. The uid is read and not used: no server is told of it by a proxy. */
export function parseTokenFile(text: string): TokenFile {
  const tokens = new Map<string, TokenUser>();
  for (const [index, line] of text.split(/\r?\n|\r$/).entries()) {
    if (line === '') continue;
    const record = readCsvRecord(line);
    if (record === undefined) return { kind: 'wrong', problem: `line ${index + 1} is no CSV` };
    if (record.length < columnsMin) return { kind: 'wrong', problem: `line ${index + 1} needs a token, a user and a uid` };
    const [token = '', user = '', , groups] = record;
    if (token === '' || user === '') return { kind: 'wrong', problem: `line ${index + 1} has an empty token or user` };
    const names = [user, ...(groups ?? '').split(',').filter((group) => group !== '')];
    const odd = names.find((name) => !isHeaderValue(name));
    if (odd !== undefined)
      return { kind: 'wrong', problem: `line ${index + 1} has a name that no header can carry: ${JSON.stringify(odd)}` };
    tokens.set(token, { user, groups: names.slice(1), extra: {} });
  }
  return { kind: 'read', tokens };
}

export function tokenFileReader(tokens: ReadonlyMap<string, TokenUser>): TokenReader {
  return { read: async (token) => tokens.get(token) };
}
