/**
 * Which objects Go's clients can decode. An object that they cannot decode ends every list and
 * watch of its type, for all shards. So the server refuses it from every source: HTTP, a push, a
 * link, or a value that another program wrote into etcd. `test/integration/json/decodable.test.ts`
 * compares these rules with client-go.
 *
 * D1 Every number fits a float64.
 * D2 The object and the levels around it nest no deeper than Go reads. A watch of tables adds
 *    four levels, and nothing adds more.
 * D3 Go matches `kind` and `apiVersion` without regard to case, and many Go programs do so for
 *    `metadata` and its members. Only the spellings of Kubernetes are accepted.
 * D4 The metadata decodes as ObjectMeta (object-meta.ts). A struct in it has no repeated member,
 *    because Go decodes each of them, not only the last.
 * D5 No object has a member `items`. Go's decoders for values without a Go type, such as kubectl's,
 *    take an object with `items` for a list.
 *
 * The shard that owns the object decides whether the object's other members fit its kind.
 */
import { isUtf8 } from 'node:buffer';
import { hasRepeats } from './duplicate-members.js';
import { member, nestingMax, NotJson, type ObjectText, scanObject } from './object-text.js';
import { otherSpelling, spellingsOf } from './other-spelling.js';

const levelsAround = 4;
const shownCharactersMax = 32;
const structured = spellingsOf(['apiVersion', 'kind', 'metadata']);
const decoder = new TextDecoder();

/** Leaves the metadata's values to the caller (D4). Throws NotJson. */
export function scanDecodable(bytes: Uint8Array, membersMax: number): ObjectText {
  if (!isUtf8(bytes)) throw new NotJson('the text is not UTF-8');
  const text = scanObject(bytes, nestingMax - levelsAround, membersMax);
  const { overflowAt, top, structs } = text;
  if (overflowAt !== undefined) throw new NotJson(`cannot unmarshal number ${numberAt(bytes, overflowAt)} into Go value of type float64`);
  for (const { name } of top.list) {
    const meant = otherSpelling(name, structured);
    if (meant !== undefined) throw new NotJson(`${JSON.stringify(name)} is another spelling of ${meant}`);
  }
  if (member(top, 'items') !== undefined) throw new NotJson('an object must not have "items": clients would take it for a list');
  if (structs.some(({ members }) => members !== undefined && hasRepeats(members)))
    throw new NotJson('an entry of metadata.ownerReferences or metadata.managedFields repeats a name');
  return text;
}

function numberAt(bytes: Uint8Array, start: number): string {
  const [digits = ''] = /^[-+.eE0-9]*/.exec(decoder.decode(bytes.subarray(start, start + shownCharactersMax + 1))) ?? [];
  return digits.length > shownCharactersMax ? `${digits.slice(0, shownCharactersMax)}...` : digits;
}
