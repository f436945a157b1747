/**
 * The types of the members of frames: how each is read, with its bounds, and written. Reading a
 * written value gives the same value, except that the writer replaces lone surrogates and truncates
 * long messages.
 *
 * A reader throws a BadFrame such as ' is not a string'. `readMember` puts the name of the member
 * in front. Bodies are views of the message. Slices are parsed, because their texts become parts of
 * keys. The logical cluster, namespace and name of a pushed key are not validated here.
 */
import { parseShardName } from '../domain/shard.js';
import type { Slice } from '../domain/slice.js';
import { BadFrame } from './bad-frame.js';
import { frameBounds } from './frame-bounds.js';

export type Field<T> = Readonly<{ read: (value: unknown) => T; write: (value: T) => unknown }>;
/** A member that a later version appended to its frame; undefined if it is missing or nil. */
export type LateField<T> = Field<T | undefined> & Readonly<{ isLate: true }>;

/** Fields by name, in the order of the wire. */
export type Fields = Readonly<Record<string, Readonly<{ read: (value: unknown) => unknown; write: (value: never) => unknown }>>>;

type LateNames<F extends Fields> = { [Name in keyof F]: F[Name] extends Readonly<{ isLate: true }> ? Name : never }[keyof F];
export type ValuesOf<F extends Fields> = Readonly<
  { [Name in Exclude<keyof F, LateNames<F>>]: ReturnType<F[Name]['read']> } & {
    [Name in LateNames<F>]?: Exclude<ReturnType<F[Name]['read']>, undefined>;
  }
>;

function same<T>(value: T): T {
  return value;
}

function textOf(charactersMax: number, shorten: (value: string) => string = same): Field<string> {
  const read = (value: unknown): string => {
    if (typeof value !== 'string') throw new BadFrame(' is not a string');
    if (value.length > charactersMax) throw new BadFrame(` is longer than ${charactersMax} characters`);
    return value;
  };
  return { read, write: (value) => whole(shorten(value)) };
}

const halfCharacter = /\p{Surrogate}/gu;

/** Replaces lone surrogates: one would make the reader refuse the whole frame. */
function whole(value: string): string {
  return value.replace(halfCharacter, '\ufffd');
}

export const text = textOf(frameBounds.nameCharactersMax);
export const hash = textOf(frameBounds.hashCharactersMax);
export const id = textOf(frameBounds.idCharactersMax);
export const policyText = textOf(frameBounds.policyCharactersMax);
export const message = textOf(frameBounds.messageCharactersMax, (value) => value.slice(0, frameBounds.messageCharactersMax));

function checked<T>(isValid: (value: unknown) => value is T, flaw: string): Field<T> {
  const read = (value: unknown): T => {
    if (!isValid(value)) throw new BadFrame(flaw);
    return value;
  };
  return { read, write: same };
}

/** msgpack-shape.ts has checked that a number is whole and at least 0. */
export const count = checked((value): value is number => typeof value === 'number', ' is not a number');
export const positive = checked((value): value is number => typeof value === 'number' && value >= 1, ' is not a number above 0');
export const flag = checked((value): value is boolean => typeof value === 'boolean', ' is neither true nor false');
export const bytes = checked((value): value is Uint8Array => value instanceof Uint8Array, ' is not a byte string');

export function parsed<T extends string>(parse: (text: string) => T | undefined): Field<T> {
  const read = (value: unknown): T => {
    const known = typeof value === 'string' ? parse(value) : undefined;
    if (known === undefined) throw new BadFrame(' is not valid');
    return known;
  };
  return { read, write: same };
}

export function optional<T>({ read, write }: Field<T>): Field<T | undefined> {
  return {
    read: (value) => (value === null ? undefined : read(value)),
    write: (value) => (value === undefined ? null : write(value)),
  };
}

export function late<T>(field: Field<T>): LateField<T> {
  const { read, write } = optional(field);
  return { read: (value) => (value === undefined ? undefined : read(value)), write, isLate: true };
}

export function listOf<T>({ read, write }: Field<T>, max: number = frameBounds.namesPerFrame): Field<readonly T[]> {
  return {
    read: (value) => membersOf(value, max).map((one) => read(one)),
    write: (values) => values.map(write),
  };
}

/**
 * A list with one member for each field, in order; further members are ignored. The writer omits
 * undefined late fields at the end.
 */
export function record<F extends Fields>(fields: F, membersMax?: number): Field<ValuesOf<F>> {
  const named = Object.entries(fields).map(([name, { read, write, ...rest }]) => ({ name, read, write, isLate: 'isLate' in rest }));
  return {
    read: (value) => {
      const members = membersOf(value, membersMax);
      const values: Record<string, unknown> = {};
      let at = 0;
      for (const { name, read, isLate } of named) {
        const member = readMember(name, read, members[at]);
        if (member !== undefined || !isLate) values[name] = member;
        at += 1;
      }
      return values as ValuesOf<F>;
    },
    write: (values) => {
      const members: unknown[] = [];
      let length = 0;
      for (const { name, write, isLate } of named) {
        const value = (values as Readonly<Record<string, unknown>>)[name];
        members.push(write(value as never));
        if (value !== undefined || !isLate) length = members.length;
      }
      return length === members.length ? members : members.slice(0, length);
    },
  };
}

function membersOf(value: unknown, max: number = frameBounds.listMax): readonly unknown[] {
  if (!Array.isArray(value)) throw new BadFrame(' is not a list');
  if (value.length > max) throw new BadFrame(` has more than ${max} members`);
  return value;
}

export function readMember<T>(name: string, read: (value: unknown) => T, value: unknown): T {
  try {
    return read(value);
  } catch (error) {
    throw error instanceof BadFrame ? error.within(name) : error;
  }
}

/** A non-empty list of records in one flat array, with `width` members each. */
function rowsOf<T>(
  width: number,
  read: (members: readonly unknown[], at: number) => T,
  write: (row: T, to: unknown[]) => void,
): Field<readonly T[]> {
  return {
    read: (value) => {
      if (!Array.isArray(value) || value.length === 0 || value.length % width !== 0)
        throw new BadFrame(` is not a list of records with ${width} members each`);
      if (value.length / width > frameBounds.listMax) throw new BadFrame(` has more than ${frameBounds.listMax} records`);
      const rows: T[] = [];
      for (let at = 0; at < value.length; at += width) rows.push(read(value, at));
      return rows;
    },
    write: (rows) => {
      const flat: unknown[] = [];
      for (const row of rows) write(row, flat);
      return flat;
    },
  };
}

export type PushedKey = Readonly<{ cluster: string; namespace: string; name: string }>;

/** A pushed object. The texts of its key are not validated; the receiver parses them. */
export type PushedObject = PushedKey &
  Readonly<{
    /** The version of the object at its source, which is never compared. */
    sourceVersion: string;
    /** JSON text. Undefined: the receiver keeps what it holds under this key. */
    body: Uint8Array | undefined;
  }>;

export const keys = rowsOf<PushedKey>(
  3,
  (members, at) => ({ cluster: keyText(members[at]), namespace: keyText(members[at + 1]), name: keyText(members[at + 2]) }),
  ({ cluster, namespace, name }, to) => to.push(whole(cluster), whole(namespace), whole(name)),
);

const body = optional(bytes);

export const objects = rowsOf<PushedObject>(
  5,
  (members, at) => ({
    cluster: keyText(members[at]),
    namespace: keyText(members[at + 1]),
    name: keyText(members[at + 2]),
    sourceVersion: keyText(members[at + 3]),
    body: readMember('body', body.read, members[at + 4]),
  }),
  (object, to) => {
    to.push(whole(object.cluster), whole(object.namespace), whole(object.name), whole(object.sourceVersion), body.write(object.body));
  },
);

/** A text of any length, because one object's bad key must not end a session (frame-bounds.ts). */
function keyText(value: unknown): string {
  if (typeof value !== 'string') throw new BadFrame(' has a part of a key that is not a string');
  return value;
}

function matching(pattern: RegExp): Field<string> {
  return parsed((value) => (pattern.test(value) ? value : undefined));
}

const group = matching(/^[a-z0-9.-]{0,253}$/);
const plural = matching(/^[a-z0-9-]{1,253}$/);
const identity = matching(/^[A-Za-z0-9.-]{0,253}$/);
const namesOfSlice = record({ shard: parsed(parseShardName), group, resource: plural, identity });

/**
 * Accepts the characters that a group, a plural and an identity may have in Kubernetes APIs. None
 * of them separates the parts of a key.
 */
export const slice: Field<Slice> = {
  read: (value) => {
    const { shard, ...resource } = namesOfSlice.read(value);
    return { shard, resource };
  },
  write: ({ shard, resource: { group, resource, identity } }) => namesOfSlice.write({ shard, group, resource, identity }),
};
