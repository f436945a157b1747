/**
 * A batch as it crosses to the committer's thread. A batch can have thousands of items with a key.
 * Together they are one text, its cuts, one array of numbers and one buffer; all but the text are
 * transferred, not copied. Cloning a tree of small objects per item would cost the serving thread
 * several times as much. Items without a key are cloned.
 *
 *   text     shard·cluster·namespace·name·version·path·shard·cluster …     empty if missing
 *   cuts     where each of these texts ends
 *   numbers  kind resource expect start end marks×4 │ kind resource …
 *   bytes    body │ body │ …
 *   rare     cloned items; `kind` is `cloned`, and `resource` the index in this list
 *
 * `expect`: 0 absent, -1 any, or the revision; for a push, the index of its speaker. The options of
 * a mutation are bits of `kind`.
 */
import assert from 'node:assert/strict';
import type { Key } from '../../domain/key.js';
import type { Mutation } from '../../domain/mutation.js';
import type { Body } from '../../domain/object.js';
import type { Push, Speaker } from '../../domain/push.js';
import { formatResource, type Resource } from '../../domain/resource.js';
import { ownBuffer } from '../../json/text-edits.js';
import type { BatchItem } from '../batch-item.js';

export type WireBatch = Readonly<{
  resources: readonly Resource[];
  speakers: readonly Speaker[];
  text: string;
  cuts: Uint32Array;
  numbers: Float64Array;
  bytes: Uint8Array;
  rare: readonly BatchItem[];
}>;

type Named = Mutation | Extract<Push, { key: Key }>;
type Path = Extract<Mutation, { kind: 'put' }>['path'];

const textsEach = 6;
const numbersEach = 9;
const absent = 0;
const any = -1;
const kinds = ['cloned', 'put', 'delete', 'upsert', 'keep', 'retract'] as const;
const [kindBits, takes, bySource, keeps] = [7, 8, 16, 32];

export function packBatch(batch: readonly BatchItem[]): WireBatch {
  const packer = new Packer(batch);
  for (const asked of batch) packer.add(asked);
  return packer.packed();
}

/** Bodies of the items are views of the batch's buffer. */
export function unpackBatch(batch: WireBatch): readonly BatchItem[] {
  return Array.from({ length: batch.numbers.length / numbersEach }, (_, i) => unpack(batch, i));
}

class Packer {
  readonly #resources = new Map<string, number>();
  readonly #distinct: Resource[] = [];
  readonly #speakers: Speaker[] = [];
  readonly #rare: BatchItem[] = [];
  readonly #texts: string[] = [];
  readonly #cuts: Uint32Array;
  #characters = 0;
  readonly #numbers: Float64Array;
  readonly #bytes: Uint8Array;
  #at = 0;
  #end = 0;
  /** Consecutive items mostly have the same type. */
  #last: Readonly<{ resource: Resource; index: number }> | undefined;

  constructor(batch: readonly BatchItem[]) {
    this.#cuts = new Uint32Array(batch.length * textsEach);
    this.#numbers = new Float64Array(batch.length * numbersEach);
    this.#bytes = ownBuffer(batch.reduce((sum, asked) => sum + ('body' in asked ? asked.body.bytes.length : 0), 0));
  }

  packed(): WireBatch {
    const [text, cuts, numbers, bytes] = [this.#texts.join(''), this.#cuts, this.#numbers, this.#bytes];
    return { resources: this.#distinct, speakers: this.#speakers, text, cuts, numbers, bytes, rare: this.#rare };
  }

  add(asked: BatchItem): void {
    if ('key' in asked) this.#named(asked);
    else {
      this.#addTexts('', '', '', '', '', '');
      this.#put(kinds.indexOf('cloned'), this.#rare.push(asked) - 1, 0);
    }
    this.#at += numbersEach;
  }

  #named(asked: Named): void {
    const { shard, cluster, namespace, name, resource } = asked.key;
    const [version, path] = 'body' in asked ? [asked.body.version, asked.path ?? ''] : ['', ''];
    this.#addTexts(shard, cluster, namespace, name, version, path);
    this.#put(kinds.indexOf(asked.kind) | flagsOf(asked), this.#index(resource), 'by' in asked ? this.#speaker(asked.by) : expectOf(asked));
    if ('body' in asked) this.#body(asked.body);
  }

  #body({ bytes, marks }: Body): void {
    const start = this.#end;
    this.#bytes.set(bytes, start);
    this.#end += bytes.length;
    this.#numbers[this.#at + 3] = start;
    this.#numbers[this.#at + 4] = this.#end;
    this.#numbers[this.#at + 5] = marks.metadataStart;
    this.#numbers[this.#at + 6] = marks.metadataEnd;
    this.#numbers[this.#at + 7] = marks.annotationsAt;
    this.#numbers[this.#at + 8] = marks.revisionAt;
  }

  #speaker(by: Speaker): number {
    const last = this.#speakers.at(-1);
    return (last !== undefined && isSameSpeaker(last, by) ? this.#speakers.length : this.#speakers.push(by)) - 1;
  }

  #addTexts(...texts: readonly string[]): void {
    for (const text of texts) {
      this.#characters += text.length;
      this.#cuts[this.#texts.length] = this.#characters;
      this.#texts.push(text);
    }
  }

  #put(kind: number, resource: number, expect: number): void {
    this.#numbers[this.#at] = kind;
    this.#numbers[this.#at + 1] = resource;
    this.#numbers[this.#at + 2] = expect;
  }

  #index(resource: Resource): number {
    if (this.#last?.resource === resource) return this.#last.index;
    const text = formatResource(resource);
    const index = this.#resources.get(text) ?? this.#distinct.push(resource) - 1;
    this.#resources.set(text, index);
    this.#last = { resource, index };
    return index;
  }
}

function unpack({ resources, speakers, text: all, cuts, numbers, bytes, rare }: WireBatch, i: number): BatchItem {
  const number = (slot: number): number => numbers[i * numbersEach + slot] ?? 0;
  const text = (slot: number): string => all.slice(cuts[i * textsEach + slot - 1] ?? 0, cuts[i * textsEach + slot]);
  const [flags, expect] = [number(0), number(2)];
  const kind = kinds[flags & kindBits];
  assert(kind !== undefined, 'a batch is of known kinds');
  if (kind === 'cloned') return mustFind(rare[number(1)]);

  const names = { shard: text(0), cluster: text(1), namespace: text(2), name: text(3) } as Omit<Key, 'resource'>;
  const key: Key = { resource: mustFind(resources[number(1)]), ...names };
  if (kind === 'delete') return { kind, key, expect: expect === any ? 'any' : expect, ...optionsOf(flags) };
  if (kind === 'keep' || kind === 'retract') return { kind, key, by: mustFind(speakers[expect]) };

  const marks = { metadataStart: number(5), metadataEnd: number(6), annotationsAt: number(7), revisionAt: number(8) };
  const body: Body = { bytes: bytes.subarray(number(3), number(4)), version: text(4), marks };
  const path = text(5) === '' ? undefined : (text(5) as Path);
  if (kind === 'upsert') return { kind, key, body, path, by: mustFind(speakers[expect]) };
  return { kind, key, body, path, expect: expect === absent ? 'absent' : expect, ...optionsOf(flags) };
}

function mustFind<T>(found: T | undefined): T {
  assert(found !== undefined, 'what a batch names is in it');
  return found;
}

function expectOf({ expect }: Mutation): number {
  return expect === 'absent' ? absent : expect === 'any' ? any : expect;
}

function flagsOf(asked: Named): number {
  if ('by' in asked) return 0;
  const isKeeping = asked.kind === 'put' && asked.keeps === true;
  return (asked.takes === true ? takes : 0) | (asked.bySource === true ? bySource : 0) | (isKeeping ? keeps : 0);
}

function optionsOf(flags: number): Readonly<{ takes?: true; bySource?: true; keeps?: true }> {
  return {
    ...((flags & takes) !== 0 && { takes: true }),
    ...((flags & bySource) !== 0 && { bySource: true }),
    ...((flags & keeps) !== 0 && { keeps: true }),
  };
}

function isSameSpeaker(one: Speaker, other: Speaker): boolean {
  if (one.kind === 'pusher') return other.kind === 'pusher' && one.term === other.term;
  return other.kind === 'link' && one.neighbour === other.neighbour;
}
