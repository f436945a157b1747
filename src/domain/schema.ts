/**
 * Schemas of what caches send each other as JSON. A schema is a function that reads a parsed value;
 * TypeScript derives the type from it, so both are written once.
 *
 * An object may have unknown members, because its sender may be newer. A missing member is an
 * error, unless its schema is `later` or `optional`.
 */
import { CacheError } from './errors.js';
import { isObject } from './base/members.js';

/** Throws CacheError, which says what is missing. */
export type Schema<T> = (value: unknown) => T;
export type Infer<S> = S extends Schema<infer T> ? T : never;

type Fields = Readonly<Record<string, Schema<unknown>>>;
type OptionalName<F extends Fields> = { [N in keyof F]: undefined extends Infer<F[N]> ? N : never }[keyof F];
type Flat<T> = { readonly [N in keyof T]: T[N] };
type ObjectOf<F extends Fields> = Flat<
  { [N in Exclude<keyof F, OptionalName<F>>]: Infer<F[N]> } & { [N in OptionalName<F>]?: Infer<F[N]> }
>;
type Variants = Readonly<Record<string, Fields>>;
type VariantOf<V extends Variants> = { [Kind in keyof V & string]: Flat<Readonly<{ kind: Kind }> & ObjectOf<V[Kind]>> }[keyof V & string];

export const text = primitive<string>('string', 'a string');
export const number = primitive<number>('number', 'a number');
export const truth = primitive<boolean>('boolean', 'true or false');

export function object<F extends Fields>(fields: F): Schema<ObjectOf<F>> {
  const named = Object.entries(fields);
  return (value) => {
    if (!isObject(value)) throw missing('an object');
    const read = named.map(([name, schema]) => [name, schema(value[name])] as const);
    return Object.fromEntries(read.filter(([, member]) => member !== undefined)) as ObjectOf<F>;
  };
}

export function list<T>(item: Schema<T>): Schema<readonly T[]> {
  return (value) => {
    if (!Array.isArray(value)) throw missing('a list');
    return value.map(item);
  };
}

export function orNull<T>(schema: Schema<T>): Schema<T | null> {
  return (value) => (value === null ? null : schema(value));
}

/** A member that older caches do not send; `absent` stands for it. */
export function later<T, Absent extends T>(schema: Schema<T>, absent: Absent): Schema<T> {
  return (value) => (value === undefined ? absent : schema(value));
}

export function optional<T>(schema: Schema<T>): Schema<T | undefined> {
  return (value) => (value === undefined ? undefined : schema(value));
}

/** `name`: what the value means, for the error message. */
export function oneOf<const Word extends string>(name: string, words: readonly Word[]): Schema<Word> {
  return (value) => words.find((word) => word === value) ?? fail(name);
}

/** A string that `parse` accepts. */
export function parsed<T>(name: string, parse: (text: string) => T | undefined): Schema<T> {
  return (value) => parse(text(value)) ?? fail(name);
}

/** An object whose `kind` says which members it has. */
export function variants<V extends Variants>(name: string, fieldsOf: V): Schema<VariantOf<V>> {
  const kinds = new Map(Object.entries(fieldsOf).map(([kind, fields]) => [kind, object(fields)]));
  return (value) => {
    const kind = isObject(value) && typeof value['kind'] === 'string' ? value['kind'] : '';
    const schema = kinds.get(kind) ?? fail(name);
    return { kind, ...schema(value) } as VariantOf<V>;
  };
}

function primitive<T>(type: 'string' | 'number' | 'boolean', name: string): Schema<T> {
  return (value) => (typeof value === type ? (value as T) : fail(name));
}

function fail(name: string): never {
  throw missing(name);
}

function missing(name: string): CacheError {
  return new CacheError(`the answer is not the status of a Strata cache: ${name} is missing`);
}
