/** Parsers of the members of a frame. Each returns the member as its type, or throws a BadFrame that names it. */
import { BadFrame } from './bad-frame.js';
import { frameBounds } from './frame-bounds.js';

/** A member that has come, with its name for error messages. */
export type Member = Readonly<{ value: unknown; name: string }>;

export function asList({ value, name }: Member, max: number = frameBounds.listMax): readonly unknown[] {
  if (!Array.isArray(value)) throw new BadFrame(`${name} is no list`);
  if (value.length > max) throw new BadFrame(`${name} is too long`);
  return value;
}

/** Calls `parse` for each member of the list. */
export function asListOf<T>({ value, name }: Member, parse: (member: Member) => T, max?: number): readonly T[] {
  return asList({ value, name }, max).map((one) => parse({ value: one, name }));
}

/** A list of at least one record laid end to end, `width` members each. Calls `parse` with the place where each begins. */
export function asRows<T>({ value, name }: Member, width: number, parse: (members: readonly unknown[], at: number) => T): readonly T[] {
  if (!Array.isArray(value) || value.length === 0 || value.length % width !== 0)
    throw new BadFrame(`${name} is no list of ${width} members each`);
  if (value.length / width > frameBounds.listMax) throw new BadFrame(`${name} is too long`);
  const rows: T[] = [];
  for (let at = 0; at < value.length; at += width) rows.push(parse(value, at));
  return rows;
}

export function asText({ value, name }: Member, charactersMax: number = frameBounds.nameCharactersMax): string {
  if (typeof value !== 'string') throw new BadFrame(`${name} is no text`);
  if (value.length > charactersMax) throw new BadFrame(`${name} is too long`);
  return value;
}

export function asMessage(member: Member): string {
  return asText(member, frameBounds.messageCharactersMax);
}

export function asFilterHash(member: Member): string {
  return asText(member, frameBounds.hashCharactersMax);
}

/** 0 or above: msgpack-shape.ts has checked that. */
export function asCount({ value, name }: Member): number {
  if (typeof value !== 'number') throw new BadFrame(`${name} is no number`);
  return value;
}

export function asPositive({ value, name }: Member): number {
  if (typeof value !== 'number' || value < 1) throw new BadFrame(`${name} is no number above 0`);
  return value;
}

export function asFlag({ value, name }: Member): boolean {
  if (typeof value !== 'boolean') throw new BadFrame(`${name} is neither true nor false`);
  return value;
}

/** A text that `parse` accepts. */
export function asParsed<T>({ value, name }: Member, parse: (text: string) => T | undefined): T {
  const known = typeof value === 'string' ? parse(value) : undefined;
  if (known === undefined) throw new BadFrame(`${name} is none`);
  return known;
}

/** nil, or what `parse` returns for it. */
export function asOptional<T>(member: Member, parse: (member: Member) => T): T | undefined {
  return member.value === null ? undefined : parse(member);
}

/** A member that was added to its frame later than the first writers of the frame: missing is nil. */
export function asAdded<T>(member: Member, parse: (member: Member) => T): T | undefined {
  return member.value === undefined ? undefined : asOptional(member, parse);
}

export function asBytes({ value, name }: Member): Uint8Array {
  if (!(value instanceof Uint8Array)) throw new BadFrame(`${name} is no bytes`);
  return value;
}
