/**
 * Decides what a plain write does to the names that are kept on the copies of its type
 * (domain/kept-names.ts).
 *
 *   a listed name        a patch, or a PUT that changes      any other PUT
 *                        only listed names
 *   has another value    is set on the copy                  counts as the shard's own value
 *   is missing           a patch removes it                  stays, if it was set on the copy
 *                        a PUT: as in any other PUT
 *   is as stored         stays what it was: set on the copy, or the shard's
 */
import { badRequest, Refused } from '../domain/errors.js';
import { keptPlaces, type NamesOfType } from '../domain/kept-names.js';
import type { Body } from '../domain/object.js';
import type { HeavyWork } from '../domain/ports.js';
import { chosen, keptIn, listedIn, withNames, withoutNames, type Kept } from '../json/kept-members.js';
import { saysTheSame } from './says-the-same.js';

/**
 * Bounds the kept names of one copy. They count towards the size limits of the whole object, so
 * this bound stays far below those.
 */
const keptCharactersMax = 4 * 1024;
const tooMuchKept = `the names that are kept on one copy, with their values, have at most ${keptCharactersMax} characters together`;

/** `keeps`: the write changes listed names only. */
export type KeptWrite = Readonly<{ body: Body; keeps: boolean }>;

/**
 * `isWhole`: the write is a PUT. Throws Refused. A write that changes listed names only is applied
 * to the stored text. So the object stays the same for its pusher, which sends it without those
 * names.
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
