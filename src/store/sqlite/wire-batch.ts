/**
 * What the committer is asked, as it crosses to its thread: one text, its cuts, one array of numbers and one buffer, all but the
 * text handed over whole. Cloning a tree of small objects for each mutation costs the serving thread several times as much.
 *
 *   text     shard·cluster·namespace·name·version·path·shard·cluster …           nothing where there is none
 *   cuts     where each of them ends
 *   numbers  kind resource expect start end marks×4     │ kind resource …          expect: 0 absent, -1 any; of a push its speaker;
 *   bytes    body │ body │ …                                                         of a claim its term; of a clear its time
 *   neighbours  parent │ child/eu │ …                     each once
 *
 * A speaker is a pusher's term or, below 0, a link: -1 is the first of the neighbours. What has no body uses the numbers otherwise:
 *   start    the walk that is resumed, 0 for a new one; of an acquire its time
 *   end      of a clear: fence, onlyRemoved; of a claim: removed, plain
 *   next     of an end: the term of its claim; of a claim: its via, -1 for none
 *   expect   of an acquire: the term that it names
 * Another text that an item has stands in the place of the cluster; a claim's process and an end's buckets in that of the namespace.
 * Mutations that take their shard, those of the shard itself and those of kept names are of kinds after all others.
 */
import assert from 'node:assert/strict';
import { parseBucketSet } from '../../domain/buckets.js';
import type { ClusterName } from '../../domain/cluster.js';
import { unreachable } from '../../domain/errors.js';
import type { Key } from '../../domain/key.js';
import type { Mutation } from '../../domain/mutation.js';
import type { Body } from '../../domain/object.js';
import type { Push, Speaker } from '../../domain/push.js';
import { formatResource, type Resource } from '../../domain/resource.js';
import type { Neighbour, Via } from '../../domain/via.js';
import type { Slice } from '../../domain/slice.js';
import { ownBuffer } from '../../json/text-edits.js';
import type { Asked, Sweeping } from '../asked.js';

export type WireBatch = Readonly<{
  resources: readonly Resource[];
  vias: readonly Via[];
  text: string;
  cuts: Uint32Array;
  numbers: Float64Array;
  bytes: Uint8Array;
}>;

type Path = Extract<Mutation, { kind: 'put' }>['path'];

const textsEach = 6;
const numbersEach = 9;
const absent = 0;
const any = -1;
const fences = 1;
const onlyIfRemoved = 2;
const [asTaking, asSource, asKeeping] = [1, 2, 3];
const isRemoved = 1;
const isPlain = 2;

const kinds = [
  ...(['put', 'delete', 'acquire', 'claim', 'begin', 'upsert', 'keep', 'retract', 'end', 'invalidate', 'compare'] as const),
  ...(['meet', 'reach', 'clear', 'drop', 'assume', 'leave', 'forget'] as const),
];

export function packBatch(batch: readonly Asked[]): WireBatch {
  const packer = new Packer(batch);
  for (const asked of batch) packer.add(asked);
  return packer.packed();
}

/** The batch again; bodies are views of its buffer. */
export function unpackBatch(batch: WireBatch): readonly Asked[] {
  const speakerOf = speakers(batch.vias);
  return Array.from({ length: batch.numbers.length / numbersEach }, (_, i) => unpack(batch, i, speakerOf));
}

class Packer {
  readonly #resources = new Map<string, number>();
  readonly #distinct: Resource[] = [];
  readonly #vias: Via[] = [];
  readonly #texts: string[] = [];
  readonly #cuts: Uint32Array;
  #characters = 0;
  readonly #numbers: Float64Array;
  readonly #bytes: Uint8Array;
  #at = 0;
  #end = 0;
  /** Consecutive items are most often of one type. */
  #last: Readonly<{ resource: Resource; index: number }> | undefined;

  constructor(batch: readonly Asked[]) {
    this.#cuts = new Uint32Array(batch.length * textsEach);
    this.#numbers = new Float64Array(batch.length * numbersEach);
    this.#bytes = ownBuffer(batch.reduce((sum, asked) => sum + bodyBytes(asked), 0));
  }

  packed(): WireBatch {
    const text = this.#texts.join('');
    return { resources: this.#distinct, vias: this.#vias, text, cuts: this.#cuts, numbers: this.#numbers, bytes: this.#bytes };
  }

  add(asked: Asked): void {
    if (asked.kind === 'resume') this.#pack(asked.push, asked.walk);
    else this.#pack(asked, 0);
    this.#at += numbersEach;
  }

  #pack(asked: Mutation | Push, walk: number): void {
    const kind = kinds.indexOf(asked.kind);
    switch (asked.kind) {
      case 'put':
        return this.#body(asked.key, asked, asWritten(asked, kind), asked.expect === 'absent' ? absent : asked.expect);
      case 'upsert':
        return this.#body(asked.key, asked, kind, this.#speaker(asked.by));
      case 'delete':
        return this.#names(asked.key, asWritten(asked, kind), asked.expect === 'any' ? any : asked.expect);
      case 'keep':
      case 'retract':
        return this.#names(asked.key, kind, this.#speaker(asked.by));
      case 'begin':
        return this.#slice(asked.slice, asked.cluster ?? '', kind, this.#speaker(asked.by), 0);
      case 'invalidate':
        return this.#slice(asked.slice, '', kind, this.#speaker(asked.by), 0);
      case 'compare':
        return this.#slice(asked.slice, asked.digest, kind, this.#speaker(asked.by), 0);
      case 'end':
        this.#say(asked.slice.shard, asked.filterHash, asked.buckets, asked.cluster);
        this.#put(kind, this.#index(asked.slice.resource), this.#speaker(asked.by), walk, 0);
        this.#numbers[this.#at + 5] = asked.term ?? 0;
        return;
      case 'acquire':
        this.#say(asked.shard, asked.process);
        return this.#put(kind, 0, asked.term, asked.nowMs, 0);
      case 'claim':
        this.#say(asked.shard, asked.origin, asked.process);
        this.#put(kind, 0, asked.term, 0, (asked.removed ? isRemoved : 0) | (asked.plain ? isPlain : 0));
        this.#numbers[this.#at + 5] = asked.via === undefined ? -1 : this.#via(asked.via);
        return;
      case 'meet':
        this.#say('', asked.cacheId);
        return this.#put(kind, 0, this.#via(asked.neighbour), 0, 0);
      case 'reach':
        this.#say('', asked.position);
        return this.#put(kind, 0, this.#via(asked.neighbour), 0, 0);
      case 'leave':
        this.#say('');
        return this.#put(kind, 0, this.#via(asked.neighbour), 0, 0);
      case 'assume':
      case 'forget':
        this.#say(asked.shard);
        return this.#put(kind, 0, 0, 0, 0);
      case 'clear':
        this.#say(asked.shard);
        this.#put(kind, 0, asked.nowMs, walk, (asked.fence ? fences : 0) | (asked.onlyRemoved === true ? onlyIfRemoved : 0));
        this.#numbers[this.#at + 5] = asked.through ?? any;
        return;
      case 'drop':
        this.#say('');
        return this.#put(kind, this.#index(asked.resource), asked.through, walk, 0);
      default:
        return unreachable(asked);
    }
  }

  #body(
    { resource, shard, cluster, namespace, name }: Key,
    { body, path }: { body: Body; path: Path },
    kind: number,
    expect: number,
  ): void {
    const { bytes, version, marks } = body;
    const start = this.#end;
    this.#bytes.set(bytes, start);
    this.#end += bytes.length;
    this.#say(shard, cluster, namespace, name, version, path);
    this.#put(kind, this.#index(resource), expect, start, this.#end);
    this.#numbers[this.#at + 5] = marks.metadataStart;
    this.#numbers[this.#at + 6] = marks.metadataEnd;
    this.#numbers[this.#at + 7] = marks.annotationsAt;
    this.#numbers[this.#at + 8] = marks.revisionAt;
  }

  #names({ resource, shard, cluster, namespace, name }: Key, kind: number, expect: number): void {
    this.#say(shard, cluster, namespace, name);
    this.#put(kind, this.#index(resource), expect, 0, 0);
  }

  #slice({ shard, resource }: Slice, text: string, kind: number, speaker: number, walk: number): void {
    this.#say(shard, text);
    this.#put(kind, this.#index(resource), speaker, walk, 0);
  }

  #speaker(by: Speaker): number {
    return by.kind === 'pusher' ? by.term : -1 - this.#via(by.neighbour);
  }

  #via(via: Via): number {
    const known = this.#vias.indexOf(via);
    return known < 0 ? this.#vias.push(via) - 1 : known;
  }

  #say(shard: string, cluster = '', namespace = '', name = '', version = '', path = ''): void {
    for (const text of [shard, cluster, namespace, name, version, path]) {
      this.#characters += text.length;
      this.#cuts[this.#texts.length] = this.#characters;
      this.#texts.push(text);
    }
  }

  #put(kind: number, resource: number, expect: number, start: number, end: number): void {
    this.#numbers[this.#at] = kind;
    this.#numbers[this.#at + 1] = resource;
    this.#numbers[this.#at + 2] = expect;
    this.#numbers[this.#at + 3] = start;
    this.#numbers[this.#at + 4] = end;
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

function unpack({ resources, vias, text: all, cuts, numbers, bytes }: WireBatch, i: number, speakerOf: (value: number) => Speaker): Asked {
  const number = (slot: number): number => numbers[i * numbersEach + slot] ?? 0;
  const text = (slot: number): string => all.slice(cuts[i * textsEach + slot - 1] ?? 0, cuts[i * textsEach + slot]);
  const as = Math.floor(number(0) / kinds.length);
  const written = as === asTaking ? { takes: true } : as === asSource ? { bySource: true } : as === asKeeping ? { keeps: true } : {};
  const kind = kinds[number(0) % kinds.length];
  const resource = resources[number(1)];
  const expect = number(2);
  const shard = text(0) as Key['shard'];
  assert(kind !== undefined, 'a batch is of known kinds');
  if (kind === 'acquire') return { kind, shard, process: text(1), term: expect, nowMs: number(3) };
  if (kind === 'claim') {
    const [removed, plain] = [(number(4) & isRemoved) !== 0, (number(4) & isPlain) !== 0];
    return { kind, shard, term: expect, process: text(2), removed, origin: text(1), via: vias[number(5)], plain };
  }
  if (kind === 'meet') return { kind, neighbour: linkAt(vias, expect), cacheId: text(1) };
  if (kind === 'reach') return { kind, neighbour: linkAt(vias, expect), position: text(1) };
  if (kind === 'leave') return { kind, neighbour: linkAt(vias, expect) };
  if (kind === 'assume' || kind === 'forget') return { kind, shard };
  if (kind === 'clear') {
    const [fence, onlyRemoved] = [(number(4) & fences) !== 0, (number(4) & onlyIfRemoved) !== 0];
    const through = number(5) === any ? {} : { through: number(5) };
    return resumed({ kind, shard, fence, nowMs: expect, ...through, ...(onlyRemoved ? { onlyRemoved } : {}) }, number(3));
  }

  assert(resource !== undefined, 'a slice and a key are of a type');
  if (kind === 'drop') return resumed({ kind, resource, through: expect }, number(3));
  if (kind === 'begin') return { kind, slice: { shard, resource }, ...inCluster(text(1)), by: speakerOf(expect) };
  if (kind === 'invalidate') return { kind, slice: { shard, resource }, by: speakerOf(expect) };
  if (kind === 'compare') return { kind, slice: { shard, resource }, by: speakerOf(expect), digest: text(1) };
  if (kind === 'end') {
    const buckets = parseBucketSet(text(2));
    const claimed = number(5) === 0 ? {} : { term: number(5) };
    const added = { ...inCluster(text(3)), ...(buckets && { buckets }), ...claimed };
    return resumed({ kind, slice: { shard, resource }, by: speakerOf(expect), filterHash: text(1), ...added }, number(3));
  }

  const key: Key = { resource, shard, cluster: text(1) as Key['cluster'], namespace: text(2), name: text(3) };
  if (kind === 'delete') return { kind, key, expect: expect === any ? 'any' : expect, ...written };
  if (kind === 'keep' || kind === 'retract') return { kind, key, by: speakerOf(expect) };

  const marks = { metadataStart: number(5), metadataEnd: number(6), annotationsAt: number(7), revisionAt: number(8) };
  const body: Body = { bytes: bytes.subarray(number(3), number(4)), version: text(4), marks };
  const path = text(5) === '' ? undefined : (text(5) as Path);
  if (kind === 'upsert') return { kind, key, body, path, by: speakerOf(expect) };
  return { kind, key, body, path, expect: expect === absent ? 'absent' : expect, ...written };
}

function inCluster(text: string): Readonly<{ cluster?: ClusterName }> {
  return text === '' ? {} : { cluster: text as ClusterName };
}

/** Consecutive items most often have one speaker: they share it. */
function speakers(vias: readonly Via[]): (value: number) => Speaker {
  let last: Readonly<{ value: number; speaker: Speaker }> | undefined;
  return (value) => {
    if (last?.value !== value) {
      const speaker: Speaker = value < 0 ? { kind: 'link', neighbour: linkAt(vias, -1 - value) } : { kind: 'pusher', term: value };
      last = { value, speaker };
    }
    return last.speaker;
  };
}

function linkAt(vias: readonly Via[], at: number): Neighbour {
  const via = vias[at];
  assert(via !== undefined && via !== 'local', 'a link has a neighbour of its own');
  return via;
}

/** Never two of them (intake/plain-writes.ts): a write that takes the shard finds no pusher there. */
function asWritten(mutation: Mutation, kind: number): number {
  const { takes, bySource } = mutation;
  const keeps = mutation.kind === 'put' && mutation.keeps === true;
  return kind + kinds.length * (takes === true ? asTaking : bySource === true ? asSource : keeps ? asKeeping : 0);
}

function resumed(push: Sweeping, walk: number): Asked {
  return walk === 0 ? push : { kind: 'resume', push, walk };
}

function bodyBytes(asked: Asked): number {
  return asked.kind === 'put' || asked.kind === 'upsert' ? asked.body.bytes.length : 0;
}
