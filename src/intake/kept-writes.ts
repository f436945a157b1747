/**
 * What a plain write makes of the names that are kept on the copies of its type (domain/kept-names.ts).
 *
 *   a listed name              in a patch, or a PUT that changes listed names alone      in any other PUT
 *   with another value         is set on the copy                                        is the shard's, which the writer brings
 *   lacking                    a patch removes it                                        stays, if it was set on the copy
 *   as it is stored            stays what it was: set on the copy, or the shard's
 */
import { badRequest, Refused } from '../domain/errors.js';
import { keptPlaces, type NamesOfType } from '../domain/kept-names.js';
import type { Body } from '../domain/object.js';
import type { HeavyWork } from '../domain/ports.js';
import { chosen, keptIn, listedIn, withNames, withoutNames, type Kept } from '../json/kept-members.js';
import { saysTheSame } from './says-the-same.js';

/** Of one copy. Its shard's own object and what is kept share the limits of an object, so this stays far below them. */
const keptCharactersMax = 4 * 1024;
const tooMuchKept = `the names that are kept on one copy, with their values, have at most ${keptCharactersMax} characters together`;

/** `keeps`: it changes such names, and nothing else. */
export type KeptWrite = Readonly<{ body: Body; keeps: boolean }>;

/**
 * `isWhole`: it is a PUT. Throws Refused. What changes listed names alone is put into the stored text, so that the object stays the same for its pusher, who sends it without them.
 */
export async function keptWrite(
  { next, stored, names, isWhole }: Readonly<{ next: Body; stored: Body; names: NamesOfType; isWhole: boolean }>,
  heavy: HeavyWork,
): Promise<KeptWrite> {
  const [sent, before, kept] = [listedIn(next, names), listedIn(stored, names), keptIn(stored, names)];
  const [bare, storedBare] = [withoutNames(next, names), withoutNames(stored, names)];
  const keeps = await saysTheSame(bare, storedBare, heavy);
  const sets = keeps || !isWhole;
  const values = chosen(names, (place, name) => sent[place].get(name) ?? (isWhole ? kept?.[place].get(name) : undefined));
  const marked = chosen(names, (place, name) => {
    const value = values[place].get(name);
    return value === before[place].get(name) ? kept?.[place].get(name) : sets ? value : undefined;
  });
  if (charactersOf(marked) > keptCharactersMax) throw new Refused(badRequest(tooMuchKept));
  return { body: withNames(keeps ? storedBare : bare, values, marked), keeps };
}

function charactersOf(kept: Kept): number {
  return keptPlaces.flatMap((place) => [...kept[place]]).reduce((sum, [name, value]) => sum + name.length + value.length, 0);
}
