/**
 * Admits a write over HTTP against the published state, then submits it with the revision it was
 * admitted against. So the committer only compares revisions. A write that changes nothing is never
 * submitted.
 */
import { Buffer } from 'node:buffer';
import { randomInt, randomUUID } from 'node:crypto';
import type { Caller } from '../../domain/caller.js';
import { badRequest, Refused } from '../../domain/errors.js';
import {
  addedMax,
  keptCharactersMax,
  keptMaps,
  namesOfType,
  nothingAdded,
  type KeptNames,
  type NamesOfType,
} from '../../domain/kept-names.js';
import type { Key } from '../../domain/key.js';
import type { Mutation, Outcome } from '../../domain/mutation.js';
import { uidOf } from '../../domain/object-metadata.js';
import type { Body, StoredObject } from '../../domain/object.js';
import { mustParse } from '../../domain/parsed.js';
import type { Clock, HeavyWork, Intake as IntakePort } from '../../domain/ports.js';
import type { Objects, Writer } from '../../domain/store-port.js';
import type { CreateRequest, DeleteRequest, Stored, UpdateRequest } from '../../domain/write-request.js';
import { chosen, keptIn, listedIn, withNames, withoutNames, type Kept } from '../../json/kept-members.js';
import { stringsDiffer } from '../../json/same-content.js';
import type { Decision, PlainWrites } from './plain-writes.js';
import { admitCreate } from '../admit/admit-create.js';
import { admitUpdate } from '../admit/admit-update.js';
import { assertAwaited, ObjectTurns } from './object-turns.js';
import { alreadyExists, conflict, notFound, preconditionFailed } from '../admit/refusals.js';

export type IntakeParts = Readonly<{
  objects: Objects;
  writer: Writer;
  clock: Clock;
  keptNames: KeptNames;
  plainWrites: Pick<PlainWrites, 'decide' | 'written' | 'recordWrite'>;
}>;

type By = Pick<CreateRequest, 'caller' | 'dryRun'>;
type Put = Mutation & { kind: 'put' };

/** Kubernetes' own number of attempts at a generated name. */
const generatedNameTriesMax = 8;
const elsewhere = 'the shard belongs to another cache; please write there';
/** Kubernetes' alphabet for generated names: no vowels, and no characters that look alike. */
const suffixAlphabet = 'bcdfghjklmnpqrstvwxz2456789';
const suffixCharacters = 5;

export class Intake implements IntakePort {
  readonly #parts: IntakeParts;
  readonly #turns = new ObjectTurns();

  constructor(parts: IntakeParts) {
    this.#parts = parts;
  }

  async create(bytes: Uint8Array, request: CreateRequest): Promise<Stored> {
    for (let tries = 1; ; tries++) {
      const admitted = mustParse(admitCreate(bytes, { ...request, nowMs: this.#parts.clock.wallMs(), uid: randomUUID, suffix }));
      const { mutation, warnings, generated } = admitted;
      this.#parts.plainWrites.recordWrite(mutation.key.shard);
      const object = await this.#store(mutation, undefined, request);
      if (object !== undefined) return { object, warnings };
      if (!generated) throw new Refused(alreadyExists(mutation.key));
      if (tries === generatedNameTriesMax) throw new Refused(alreadyExists(mutation.key, { retryAfterSeconds: 1 }));
    }
  }

  update(textFor: (current: StoredObject) => Uint8Array | Promise<Uint8Array>, request: UpdateRequest, heavy: HeavyWork): Promise<Stored> {
    const { key, asker } = request;
    this.#parts.plainWrites.recordWrite(key.shard);
    return this.#turns.run(key, asker, async () => {
      for (;;) {
        const current = await this.#current(key);
        const names = namesOfType(this.#parts.keptNames, key.resource);
        // The result of a patch has the kept names too.
        const added = names === undefined || request.mustNameRevision ? nothingAdded : addedMax;
        const { stored, warnings, ...admitted } = mustParse(admitUpdate(await textFor(current), request, current, added));
        // Only a PUT must name a revision, so `mustNameRevision` means a PUT. A patch that lacks a
        // kept name removes that name.
        const asked = { next: admitted.mutation.body, stored, isWhole: request.mustNameRevision };
        const kept = names && (await keptWrite({ ...asked, names }, heavy));
        const mutation = { ...admitted.mutation, ...kept };
        const isSame = await saysTheSame(mutation.body, stored, heavy);
        const object = isSame ? current : await this.#store(mutation, current, request);
        if (object !== undefined) return { object, warnings };
        // A pusher or another server of the store changed the object first. If this request names
        // the old revision, the next admission refuses it.
        assertAwaited(asker);
      }
    });
  }

  delete(request: DeleteRequest): Promise<StoredObject> {
    const { caller, type, key, dryRun, uid, resourceVersion, asker } = request;
    this.#parts.plainWrites.recordWrite(key.shard);
    const isConditional = uid !== undefined || resourceVersion !== undefined;
    return this.#turns.run(key, asker, async () => {
      for (;;) {
        const current = await this.#current(key);
        const failed = preconditionFailed({ type, current, held: uidOf(current.body) }, { uid, resourceVersion });
        if (failed !== undefined) throw new Refused(failed);
        if (dryRun) this.#decide({ key }, caller);
        if (dryRun) return current;
        const outcome = await this.#submit({ kind: 'delete', key, expect: isConditional ? current.revision : 'any' }, caller);
        if (outcome.kind === 'written') return outcome.object;
        if (outcome.why === 'absent') throw new Refused(notFound(key));
        // Another write was committed between the check and this delete: check again.
        assertAwaited(asker);
      }
    });
  }

  /**
   * `current`: the object that the write replaces. Returns undefined if the name already exists, or
   * if another write changed the object first.
   */
  async #store(mutation: Put, current: StoredObject | undefined, { caller, dryRun }: By): Promise<StoredObject | undefined> {
    if (dryRun) {
      this.#decide(mutation, caller);
      const exists = current === undefined && (await this.#parts.objects.get(mutation.key)) !== undefined;
      return exists ? undefined : unstored(mutation, current?.resourceVersion ?? '');
    }
    const outcome = await this.#submit(mutation, caller);
    if (outcome.kind === 'written') return outcome.object;
    if (outcome.why === 'absent') throw new Refused(notFound(mutation.key));
    return undefined;
  }

  async #current(key: Key): Promise<StoredObject> {
    const current = await this.#parts.objects.get(key);
    if (current === undefined) throw new Refused(notFound(key));
    return current;
  }

  /** Throws Refused if the caller may not write to the shard over plain HTTP. */
  #decide({ key, keeps = false }: Readonly<{ key: Key; keeps?: boolean }>, caller: Caller): Decision & { kind: 'writes' } {
    const judged = this.#parts.plainWrites.decide(key.shard, caller, keeps);
    if (judged.kind === 'refused') throw new Refused(judged.refusal);
    return judged;
  }

  async #submit(mutation: Mutation, caller: Caller): Promise<Exclude<Outcome, { kind: 'unavailable' | 'unknown' }>> {
    const judged = this.#decide(mutation, caller);
    const outcome = await this.#parts.writer.submit(judged.as === undefined ? mutation : { ...mutation, [judged.as]: true });
    if (outcome.kind === 'written') this.#parts.plainWrites.written(mutation.key, judged);
    if (outcome.kind === 'unavailable' || outcome.kind === 'unknown') throw new Refused(outcome.refusal);
    if (outcome.kind === 'refused' && outcome.why === 'elsewhere') throw new Refused(conflict(mutation.key, elsewhere));
    return outcome;
  }
}

/** The answer to a dry run. It has no revision of its own. */
function unstored({ key, body }: Put, resourceVersion: string): StoredObject {
  return { key, revision: 0, resourceVersion, body };
}

function suffix(): string {
  return Array.from({ length: suffixCharacters }, () => suffixAlphabet[randomInt(suffixAlphabet.length)]).join('');
}

const tooMuchKept = `the kept names of one copy and their values may have at most ${keptCharactersMax} characters in all`;

/** `keeps`: the write changes listed names only. */
type KeptWrite = Readonly<{ body: Body; keeps: boolean }>;

/**
 * Decides how a plain write changes the kept names of a copy (domain/kept-names.ts).
 *
 *   a listed name        a patch, or a PUT that changes      any other PUT
 *                        only listed names
 *   has another value    is set on the copy                  counts as the shard's own value
 *   is missing           a patch removes it                  stays, if it was set on the copy
 *                        a PUT: as in any other PUT
 *   is as stored         stays what it was: set on the copy, or the shard's
 *
 * `isWhole`: the write is a PUT. Throws Refused. A write that changes listed names only is applied
 * to the stored text, in which the shard's own values stay where they are. So the next push of the
 * same object with the same kept names has the same bytes and writes nothing.
 */
async function keptWrite(
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
  const gone = chosen(names, (place, name) => (marked[place].has(name) || !values[place].has(name) ? name : undefined));
  const rest = withoutNames(keeps ? stored : next, { annotations: [...gone.annotations.keys()], labels: [...gone.labels.keys()] });
  return { body: withNames(rest, marked), keeps };
}

function charactersOf(kept: Kept): number {
  return keptMaps.flatMap((place) => [...kept[place]]).reduce((sum, [name, value]) => sum + name.length + value.length, 0);
}

/**
 * The serving thread scans texts up to this total in about 2 ms. Only the thread for heavy work
 * compares longer ones.
 */
const comparedHereBytesMax = 1024 * 1024;

/**
 * kcp repeats nearly every PUT byte for byte. A comparison that takes too long counts as different,
 * which costs an event that changes nothing.
 */
async function saysTheSame(next: Body, stored: Body, heavy: HeavyWork): Promise<boolean> {
  if (Buffer.compare(next.bytes, stored.bytes) === 0) return true;
  if (next.bytes.length + stored.bytes.length <= comparedHereBytesMax && stringsDiffer(next.bytes, stored.bytes)) return false;
  try {
    return await heavy.run({ kind: 'compare', left: next.bytes, right: stored.bytes });
  } catch (error) {
    if (error instanceof Refused && error.refusal.reason === 'RequestEntityTooLarge') return false;
    throw error;
  }
}
