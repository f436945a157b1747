/**
 * The one reader of the grammar in frame.ts. Checks every member it knows and ignores those after them, which later versions
 * added (see the ladder there).
 *
 * Bodies are views of the message. Slices are parsed, because they become keys; a key's own texts are as they came.
 */
import { unreachable } from '../domain/errors.js';
import { parseClusterName } from '../domain/cluster.js';
import { parseShardName } from '../domain/shard.js';
import { parseBucketSet } from '../domain/buckets.js';
import { BadFrame } from './bad-frame.js';
import { byes, type ByeReason } from './bye.js';
import { frameBounds } from './frame-bounds.js';
import {
  asAdded,
  asBytes,
  asCount,
  asFilterHash,
  asFlag,
  asList,
  asListOf,
  asMessage,
  asOptional,
  asParsed,
  asPositive,
  asRows,
  asText,
} from './frame-members.js';
import type { Member } from './frame-members.js';
import { frameNumbers } from './frame-numbers.js';
import type { Credit, Frame, FrameLimits, PushedKey, PushedObject } from './frame.js';
import { unpack } from './msgpack.js';
import { asHeld, asReported, asSlice, asSlices } from './slice-member.js';

type Kind = Frame['kind'];

/** Throws BadFrame. */
export function readFrame(bytes: Uint8Array): Frame {
  const message = unpack(bytes);
  if (!Array.isArray(message)) throw new BadFrame('it is no list');
  const [number, ...members]: readonly unknown[] = message;
  const kind = kinds.get(number);
  if (kind === undefined) throw new BadFrame('its kind is none');
  return read(kind, (index, name) => ({ value: members[index], name: `${kind}.${name}` }));
}

const kinds = new Map<unknown, Kind>(Object.entries(frameNumbers).map(([kind, number]) => [number, kind as Kind]));

function read(kind: Kind, member: (index: number, name: string) => Member): Frame {
  switch (kind) {
    case 'hello':
      return {
        kind,
        protocol: asPositive(member(0, 'protocol')),
        role: asParsed(member(1, 'role'), asRole),
        name: asText(member(2, 'name')),
        process: asText(member(3, 'process')),
        term: asCount(member(4, 'term')),
        takesOver: asFlag(member(5, 'takesOver')),
        route: asPath(member(6, 'route')),
        agent: asText(member(7, 'agent')),
        credit: asOptional(member(8, 'credit'), asCredit),
        limits: asOptional(member(9, 'limits'), asLimits),
        ...added('position', member(10, 'position'), asText),
      };
    case 'welcome':
      return {
        kind,
        protocol: asPositive(member(0, 'protocol')),
        cacheId: asText(member(1, 'cacheId')),
        epoch: asCount(member(2, 'epoch')),
        term: asCount(member(3, 'term')),
        credit: asCredit(member(4, 'credit')),
        limits: asLimits(member(5, 'limits')),
      };
    case 'put':
      return {
        kind,
        sequence: asPositive(member(0, 'sequence')),
        slice: asSlice(member(1, 'slice')),
        version: asText(member(2, 'version')),
        objects: asRows(member(3, 'objects'), objectWidth, asObject),
        ...added('position', member(4, 'position'), asText),
      };
    case 'delete':
      return {
        kind,
        sequence: asPositive(member(0, 'sequence')),
        slice: asSlice(member(1, 'slice')),
        keys: asRows(member(2, 'keys'), keyWidth, asKey),
        ...added('position', member(3, 'position'), asText),
      };
    case 'begin':
      return {
        kind,
        sequence: asPositive(member(0, 'sequence')),
        slice: asSlice(member(1, 'slice')),
        revision: asText(member(2, 'revision')),
        ...(asAdded(member(3, 'compares'), asFlag) === true ? { compares: true } : {}),
      };
    case 'end':
      return {
        kind,
        sequence: asPositive(member(0, 'sequence')),
        slice: asSlice(member(1, 'slice')),
        revision: asText(member(2, 'revision')),
        count: asCount(member(3, 'count')),
        filterHash: asFilterHash(member(4, 'filterHash')),
        ...added('buckets', member(5, 'buckets'), (text) => asParsed(text, parseBucketSet)),
        ...added('term', member(6, 'term'), asPositive),
      };
    case 'clusterBegin':
    case 'clusterKeep':
      return {
        kind,
        sequence: asPositive(member(0, 'sequence')),
        slice: asSlice(member(1, 'slice')),
        cluster: asParsed(member(2, 'cluster'), parseClusterName),
      };
    case 'clusterEnd':
      return {
        kind,
        sequence: asPositive(member(0, 'sequence')),
        slice: asSlice(member(1, 'slice')),
        cluster: asParsed(member(2, 'cluster'), parseClusterName),
        count: asCount(member(3, 'count')),
      };
    case 'resync':
      return { kind, slice: asSlice(member(0, 'slice')), reason: asMessage(member(1, 'reason')) };
    case 'progress':
      return { kind, sequence: asPositive(member(0, 'sequence')), position: asText(member(1, 'position')) };
    case 'claim':
      return {
        kind,
        shard: asParsed(member(0, 'shard'), parseShardName),
        term: asPositive(member(1, 'term')),
        process: asText(member(2, 'process')),
        removed: asFlag(member(3, 'removed')),
        origin: asId(member(4, 'origin')),
        path: asPath(member(5, 'path')),
        reached: asFlag(member(6, 'reached')),
        isYours: asFlag(member(7, 'isYours')),
        held: asFlag(member(8, 'held')),
      };
    case 'route':
      return { kind, route: asPath(member(0, 'route')) };
    case 'policy':
      return { kind, up: asPolicy(member(0, 'up')), down: asPolicy(member(1, 'down')) };
    case 'digest':
      return { kind, sequence: asPositive(member(0, 'sequence')), slice: asSlice(member(1, 'slice')), value: asText(member(2, 'value')) };
    case 'ack':
      return {
        kind,
        sequence: asCount(member(0, 'sequence')),
        credit: asCredit(member(1, 'credit')),
        ...added('position', member(2, 'position'), asText),
      };
    case 'refuse':
      return {
        kind,
        sequence: asPositive(member(0, 'sequence')),
        reason: asText(member(1, 'reason')),
        message: asMessage(member(2, 'message')),
      };
    case 'status':
      return { kind, freshness: asReported(member(0, 'freshness')), withdrawn: asSlices(member(1, 'withdrawn')) };
    case 'heartbeat':
      return { kind, number: asPositive(member(0, 'number')) };
    case 'report':
      return {
        kind,
        sequence: asPositive(member(0, 'sequence')),
        freshness: asReported(member(1, 'freshness')),
        heartbeat: asCount(member(2, 'heartbeat')),
        isAll: asFlag(member(3, 'isAll')),
        isComplete: asFlag(member(4, 'isComplete')),
      };
    case 'bye':
      return {
        kind,
        reason: asParsed(member(0, 'reason'), asByeReason),
        message: asMessage(member(1, 'message')),
        retryAfterMs: asOptional(member(2, 'retryAfterMs'), asCount),
      };
    case 'resume':
      return {
        kind,
        position: asText(member(0, 'position')),
        held: asListOf(member(1, 'held'), asHeld, frameBounds.namesPerFrame),
        isLast: asFlag(member(2, 'isLast')),
      };
    case 'standby':
      return { kind };
    case 'summary':
      return {
        kind,
        slice: asSlice(member(0, 'slice')),
        sequence: asPositive(member(1, 'sequence')),
        digests: asBytes(member(2, 'digests')),
      };
    case 'types':
      return {
        kind,
        slices: asSlices(member(0, 'slices')),
        withdrawn: asSlices(member(1, 'withdrawn')),
        isAll: asFlag(member(2, 'isAll')),
      };
    case 'synced':
      return { kind, slices: asSlices(member(0, 'slices')) };
    case 'swept':
      return { kind, slice: asSlice(member(0, 'slice')), keys: asRows(member(1, 'keys'), keyWidth, asKey) };
    default:
      return unreachable(kind);
  }
}

function asRole(text: string): 'shard' | 'cache' | undefined {
  return text === 'shard' || text === 'cache' ? text : undefined;
}

function asByeReason(text: string): ByeReason | undefined {
  return Object.hasOwn(byes, text) ? (text as ByeReason) : undefined;
}

/** A member that came later, under its name, or nothing. */
function added<Name extends string, T>(name: Name, member: Member, parse: (member: Member) => T): Readonly<{ [K in Name]?: T }> {
  const value = asAdded(member, parse);
  return (value === undefined ? {} : { [name]: value }) as { [K in Name]?: T };
}

function asId(member: Member): string {
  return asText(member, frameBounds.idCharactersMax);
}

function asPath(member: Member): readonly string[] {
  return asListOf(member, asId, frameBounds.pathMax);
}

function asPolicy(member: Member): string {
  return asText(member, frameBounds.policyCharactersMax);
}

function asCredit({ value, name }: Member): Credit {
  const [mutations, bytes] = asList({ value, name });
  return { mutations: asCount({ value: mutations, name: `${name}.mutations` }), bytes: asCount({ value: bytes, name: `${name}.bytes` }) };
}

function asLimits({ value, name }: Member): FrameLimits {
  const [frameBytesMax, frameMutationsMax, bodyBytesMax] = asList({ value, name });
  return {
    frameBytesMax: asPositive({ value: frameBytesMax, name: `${name}.frameBytes` }),
    frameMutationsMax: asPositive({ value: frameMutationsMax, name: `${name}.frameMutations` }),
    bodyBytesMax: asPositive({ value: bodyBytesMax, name: `${name}.bodyBytes` }),
  };
}

/** How many members a record has in a list of records laid end to end. */
const objectWidth = 5;
const keyWidth = 3;

function asObject(members: readonly unknown[], at: number): PushedObject {
  const body = members[at + 4];
  return {
    cluster: asKeyText(members[at]),
    namespace: asKeyText(members[at + 1]),
    name: asKeyText(members[at + 2]),
    sourceVersion: asKeyText(members[at + 3]),
    body: body === null ? undefined : asBytes({ value: body, name: 'put.body' }),
  };
}

function asKey(members: readonly unknown[], at: number): PushedKey {
  return { cluster: asKeyText(members[at]), namespace: asKeyText(members[at + 1]), name: asKeyText(members[at + 2]) };
}

/** A text of any length: one object's key must not be able to end a session (frame-bounds.ts). */
function asKeyText(value: unknown): string {
  if (typeof value !== 'string') throw new BadFrame('part of a key is no text');
  return value;
}
