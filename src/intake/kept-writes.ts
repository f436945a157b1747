/** What a plain write makes of the names that are kept on the copies of its type (domain/kept-names.ts). */
import type { NamesOfType } from '../domain/kept-names.js';
import type { Body } from '../domain/object.js';
import type { HeavyWork } from '../domain/ports.js';
import { keptIn, withKept, withoutKept } from '../json/kept-members.js';
import { saysTheSame } from './says-the-same.js';

/** `keeps`: it changes such names, and nothing else. */
export type KeptWrite = Readonly<{ body: Body; keeps: boolean }>;

/**
 * `isWhole`: it came as a whole object, which does not remove them. What changes them alone is put into the stored text, so that the object is not another one for its
 * pusher, who sends it without them.
 */
export async function keptWrite(
  { next, stored, names, isWhole }: Readonly<{ next: Body; stored: Body; names: NamesOfType; isWhole: boolean }>,
  heavy: HeavyWork,
): Promise<KeptWrite> {
  const body = isWhole ? withKept(next, keptIn(stored, names)) : next;
  const without = withoutKept(stored, names);
  const keeps = await saysTheSame(withoutKept(body, names), without, heavy);
  return { body: keeps ? withKept(without, keptIn(body, names)) : body, keeps };
}
