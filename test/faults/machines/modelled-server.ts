/**
 * Drives a real cache and its model together over HTTP. Every write goes to both; a watch of
 * everything shows at which revision the write happened. All other lists and watches are compared
 * with the model, at once or by the validators at the end of a life.
 *
 * If several servers have one store, each request goes to the next server, and watches resume at
 * another one. A life of the store ends when an older copy of it is restored. The revisions of lost
 * changes belong to no later life.
 */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Answer, KubeClient, KubeList, KubeObject } from '../../support/kube-client.js';
import type { StrataProcess } from '../../support/strata-process.js';
import { Truth } from '../../support/truth.js';
import { validate, type Violation } from '../../support/validators.js';
import {
  positionOf,
  seenList,
  truthOf,
  WatchRecorder,
  type Began,
  type Covered,
  type Position,
  type SeenEvent,
  type SeenList,
  type SeenWatch,
  type Sighting,
} from '../../support/watch-history.js';
import { RoleModel, type Copy, type Effect, type Expected, type Write } from './role-model.js';
import {
  coveredBy,
  everywhere,
  keyAt,
  labelsOf,
  role,
  rolePath,
  saidBy,
  scopePath,
  scopeQuery,
  type Place,
  type RoleScope,
} from './roles.js';

/** How long a server may take to send what it owes a client. */
const lateMsMax = 8_000;

type Open = { recorder: WatchRecorder; scope: RoleScope; selector: string; covered: Covered; mayExpire: boolean; isPaused: boolean };

/** A write that was sent. `answer` is undefined if its server was killed. */
type Sent = Readonly<{ expected: Expected; answer: Answer | undefined; server: StrataProcess; error?: unknown }>;

export type ListForm = 'present' | 'zero' | 'exact' | 'notOlder' | 'bare' | 'future' | 'foreign';
export type WatchForm = 'behind' | 'initial' | 'healing';
export type Ending = 'SIGTERM' | 'SIGKILL';

/** The servers' store. `copy` and `putBack` are called while no server runs. */
export type ModelledStore = Readonly<{
  /** Resolves with the name of the copy. */
  copy: () => Promise<string>;
  putBack: (name: string) => Promise<void>;
  /** Whether clients cannot resume from any earlier revision once a copy is put back. */
  forgets: boolean;
}>;

type ModelledParts = Readonly<{
  servers: readonly StrataProcess[];
  store: ModelledStore;
  /** The servers may forget a change once so many came after it. */
  changesMax: number;
  http2: boolean;
}>;

export class ModelledServer {
  readonly model: RoleModel;
  readonly #servers: readonly StrataProcess[];
  readonly #store: ModelledStore;
  readonly #clients: readonly KubeClient[];
  readonly #http2: boolean;
  readonly #born: Position;
  readonly #copies: { readonly name: string; readonly copy: Copy }[] = [];
  readonly #open: Open[] = [];
  /** The change at each revision, over all lives. */
  readonly #names: Sighting[] = [];
  readonly #violations: Violation[] = [];
  #watches: SeenWatch[] = [];
  #lists: SeenList[] = [];
  /**
   * Of this life only: a store that was rolled back may begin below lost revisions, and answer 504.
   */
  #sightings: Sighting[] = [];
  #full: WatchRecorder;
  /** How many events of the watch of everything the model has recorded. */
  #taken = 0;
  #ids = 0;
  #asked = 0;

  private constructor({ servers, store, changesMax, http2 }: ModelledParts, clients: readonly KubeClient[], born: Position) {
    this.#servers = servers;
    this.#store = store;
    this.#clients = clients;
    this.#http2 = http2;
    this.#born = born;
    this.model = new RoleModel(changesMax);
    this.model.see(born);
    this.#full = this.#record('full', { kind: 'behind', position: born }, everywhere, '');
  }

  /** The servers must hold no Role yet. */
  static async begin(parts: ModelledParts): Promise<ModelledServer> {
    const clients = parts.servers.map((server) => server.client({ http2: parts.http2 }));
    const born = positionOf(await clients[0]!.list(scopePath(everywhere)));
    const modelled = new ModelledServer(parts, clients, born);
    await modelled.#full.opened;
    return modelled;
  }

  /** A label that no other write has. */
  turn(): string {
    this.#ids += 1;
    return `t${this.#ids}`;
  }

  /**
   * Sends the writes together, but only one of those that have the same key for kcp's informers.
   * `killed`: one server, or all, is killed meanwhile.
   */
  async write(writes: readonly Write[], killed?: Readonly<{ afterMs: number; which: number }>): Promise<void> {
    const keys = new Set<string>();
    const apart = writes.filter(({ place }) => keys.size < keys.add(keyAt({ ...place, shard: '' })).size);
    const sending = apart.map((write) => this.#send(write));
    let ended: readonly StrataProcess[] = [];
    if (killed !== undefined) {
      await sleep(killed.afterMs);
      ended = await this.#end('SIGKILL', killed.which);
    }
    const sent = await Promise.all(sending);
    for (const { error, server } of sent)
      assert.ok(error === undefined || ended.includes(server), `a write was not answered: ${String(error)}`);
    if (killed !== undefined) await this.#comeBack(ended);
    await this.#happened(sent);
  }

  /** Deletes the collection of one namespace. */
  async clear(scope: Omit<Place, 'name'>): Promise<void> {
    const { covers } = coveredBy(scope, '');
    const effects = this.model.expectCleared(covers);
    const answer = await this.#client().raw('DELETE', scopePath(scope));
    assert.ok(answer.status === 200 || answer.status === 429, `cleared: ${answer.status} ${answer.text}`);
    const whole = answer.status === 200 ? answer : undefined;
    await this.#happened(effects.map((each) => ({ expected: { status: 200, effects: each }, answer: whole })));
  }

  async get(place: Place): Promise<void> {
    const answer = await this.#client().raw('GET', rolePath(place));
    const held = this.model.held(place);
    assert.equal(answer.status, held === undefined ? 404 : 200);
    if (held !== undefined) this.#isThe(JSON.parse(answer.text) as KubeObject, held.place);
  }

  async list(
    scope: RoleScope,
    selector: string,
    { form, which, limit, between }: Readonly<{ form: ListForm; which: number; limit: number; between: readonly Write[] }>,
  ): Promise<void> {
    const position = this.#pick(which);
    const askedMs = performance.now();
    const query = { ...scopeQuery(scope, selector), ...this.#listQuery(form, position), ...(limit === 0 ? {} : { limit: String(limit) }) };
    const answer = await this.#client().raw('GET', `${scopePath(scope)}?${new URLSearchParams(query).toString()}`);
    assert.ok(this.#statuses(form, position, limit).includes(answer.status), `list ${form} ${position}: ${answer.status} ${answer.text}`);
    if (answer.status !== 200) return;

    const first = JSON.parse(answer.text) as KubeList;
    const at = positionOf(first);
    const isExact = form === 'exact' || (form === 'bare' && limit > 0);
    // Another server may still be behind.
    const isNewest = form === 'present' || (!isExact && this.#servers.length === 1);
    if (isExact) assert.equal(at, position, 'a list at an exact revision');
    else if ((form === 'notOlder' || form === 'bare') && this.model.isOurs(position)) assert.ok(at >= position, `a list at ${at}`);
    if (isNewest) this.#sightings.push({ position: at, askedMs, answeredMs: performance.now() });
    const covered = coveredBy(scope, selector);
    const present = new Truth(this.model.truth).stateAt(covered, at);
    if (isNewest) for (const item of first.items) this.#isThe(item, placeOf(item));
    const items = await this.#otherPages(first, query, { scope, between });
    if (items === undefined) return;
    this.model.see(at);
    this.#lists.push(seenList(`list ${++this.#ids} ${form}`, { ...first, items }, covered));
    assert.equal(items.length, present.size, `list ${form} at ${at}: ${items.map(({ metadata }) => metadata.name).join(' ')}`);
  }

  async watch(
    scope: RoleScope,
    selector: string,
    { form, which, bookmarks, slow }: Readonly<{ form: WatchForm; which: number; bookmarks: boolean; slow: boolean }>,
  ): Promise<void> {
    const position = this.#pick(which);
    const isOurs = this.model.isOurs(position);
    const isRemembered = this.model.isRemembered(position);
    const began: Began =
      form === 'behind'
        ? { kind: 'behind', position }
        : form === 'initial'
          ? { kind: 'initial' }
          : { kind: 'initial', named: position, isHealed: isRemembered };
    const recorder = this.#record(`watch ${++this.#ids} ${form}`, began, scope, selector, bookmarks || form !== 'behind');
    await recorder.opened;
    if (!isOurs && form !== 'initial') {
      await this.#refused(recorder, form);
      return;
    }
    const open = { recorder, scope, selector, covered: coveredBy(scope, selector), mayExpire: !isRemembered, isPaused: slow };
    this.#open.push(open);
    if (slow) recorder.pause();
    else await this.#caughtUp(open);
  }

  /** A client ends a watch, and resumes it with another one. */
  async resume(which: number): Promise<void> {
    const open = this.#open[which % this.#open.length];
    if (open === undefined) return;
    await this.#goOn([open]);
  }

  async restart(which: number, ending: Ending): Promise<void> {
    await this.#comeBack(await this.#end(ending, which));
  }

  /** Copies the store while no server runs on it: after a clean stop, or as a kill left it. */
  async copy(ending: Ending): Promise<void> {
    const ended = await this.#end(ending);
    this.#lookAround();
    this.#copies.push({ name: await this.#store.copy(), copy: this.model.copy() });
    await this.#comeBack(ended);
  }

  async restore(which: number, ending: Ending): Promise<void> {
    const chosen = this.#copies[which % this.#copies.length];
    if (chosen === undefined) return;
    await this.#endLife();
    const ended = await this.#end(ending);
    await this.#store.putBack(chosen.name);
    this.model.restore(chosen.copy, this.#store.forgets);
    await Promise.all(ended.map((server) => server.resume()));
    const position = this.#store.forgets
      ? positionOf(await this.#client().list(scopePath(everywhere)))
      : (this.model.truth.at(-1)?.position ?? this.#born);
    this.model.see(position);
    await this.#follow(this.#record(`full ${++this.#ids}`, { kind: 'behind', position }, everywhere, ''));
  }

  /**
   * Opens more watches at one server than it allows, and asserts that it refuses the rest with 429.
   */
  async crowd(count: number): Promise<void> {
    const client = this.#client();
    const refusals: Answer[] = [];
    // The model's latest revision may be of a life that a restore has ended.
    const from = positionOf(await client.list(scopePath(everywhere)));
    // On a busy machine the first watch may end before the last one is requested.
    for (const seconds of [1, 4, 16]) {
      const target = `${scopePath(everywhere)}?watch=true&resourceVersion=${from}&timeoutSeconds=${seconds}`;
      const answers = await Promise.all(Array.from({ length: count }, () => client.raw('GET', target, { timeoutMs: 60_000 })));
      refusals.push(...answers.filter(({ status }) => status !== 200));
      if (refusals.length > 0) break;
    }
    for (const { status, text } of refusals) assert.equal(status, 429, text);
    assert.ok(refusals.length > 0, 'more watches are open than may be');
  }

  /** Asserts that the servers have sent all that they owe, and nothing else. */
  async finish(): Promise<void> {
    await this.list(everywhere, '', { form: 'present', which: 0, limit: 0, between: [] });
    await this.#endLife();
    this.#violations.push(...validate({ truth: [], watches: [], lists: [], sightings: this.#names }, ['G9']));
    assert.deepEqual(this.#violations.slice(0, 10), []);
  }

  async close(): Promise<void> {
    for (const { recorder } of this.#open) await recorder.close();
    await this.#full.close();
    for (const client of this.#clients) client.close();
  }

  /** The server whose turn it is. */
  #next(): number {
    this.#asked += 1;
    return this.#asked % this.#servers.length;
  }

  #client(which = this.#next()): KubeClient {
    return this.#clients[which]!;
  }

  /** Ends one of the servers, or all; without `which` always all. */
  async #end(ending: Ending, which?: number): Promise<readonly StrataProcess[]> {
    const i = which === undefined ? -1 : which % (this.#servers.length + 1);
    const ended = this.#servers.filter((_, at) => !(i in this.#servers) || at === i);
    await Promise.all(ended.map((server) => (ending === 'SIGTERM' ? server.stop() : server.kill())));
    return ended;
  }

  async #send(write: Write): Promise<Sent> {
    const expected = this.model.expect(write);
    const { method, path, body, headers } = this.#request(write);
    const which = this.#next();
    const server = this.#servers[which]!;
    const answer = await this.#client(which)
      .raw(method, path, { body, headers })
      .catch((error: unknown) => ({ error }));
    if ('error' in answer) return { expected, answer: undefined, server, error: answer.error };
    assert.ok(answer.status === expected.status || answer.status === 429, `${write.kind}: ${answer.status} ${answer.text}`);
    if (answer.status > 299 || write.kind === 'delete') return { expected, answer, server };
    const object = JSON.parse(answer.text) as KubeObject;
    const { place } = write;
    this.#sightings.push({
      position: positionOf(object),
      askedMs: 0,
      answeredMs: performance.now(),
      what: `${keyAt(place)} ${object.metadata.labels?.['turn']}`,
    });
    if (expected.effects.length === 0)
      assert.equal(positionOf(object), this.model.held(place)?.position, `${write.kind} changed something`);
    return { expected, answer, server };
  }

  #request(write: Write): Readonly<{ method: string; path: string; body?: unknown; headers: Record<string, string> }> {
    const { place } = write;
    const path = rolePath(place);
    const held = this.model.held(place);
    const current = held === undefined ? '1' : String(held.position);
    switch (write.kind) {
      case 'create':
        return { method: 'POST', path: scopePath(place), body: role(place, write.content), headers: {} };
      case 'replace':
        return { method: 'PUT', path, body: role(place, write.content, write.base === 'older' ? '1' : current), headers: {} };
      case 'same':
        return { method: 'PUT', path, body: role(place, held?.content ?? nothing, current), headers: {} };
      case 'delete':
        return { method: 'DELETE', path, headers: {} };
      case 'samePatch':
        return patch(path, 'merge', { metadata: { labels: { turn: held?.content.turn ?? null } } });
      default:
        return patch(path, write.how, patchBody(write, held?.content.tier ?? ''));
    }
  }

  /** Records each write in the model, at the revision at which the watch of everything shows it. */
  async #happened(sent: readonly Pick<Sent, 'expected' | 'answer'>[]): Promise<void> {
    const now = sent.every(({ answer }) => answer !== undefined) ? undefined : await this.#present();
    const due = new Map<string, { effects: Effect[]; written: Position | undefined }>();
    let count = 0;
    for (const { expected, answer } of sent) {
      const [first] = expected.effects;
      const isDone = answer === undefined ? first !== undefined && isThere(now, first) : answer.status < 300;
      if (!isDone || first === undefined) continue;
      const written = answer === undefined || first.kind === 'delete' ? undefined : positionOf(JSON.parse(answer.text) as KubeObject);
      due.set(keyAt({ ...first.place, shard: '' }), { effects: [...expected.effects], written });
      count += expected.effects.length;
    }
    for (const event of await this.#take(count)) {
      const chain = due.get(`|${event.key.slice(event.key.indexOf('|') + 1)}`);
      const effect = chain?.effects.shift();
      assert.ok(chain !== undefined && effect !== undefined, `no write caused ${event.type} ${event.key} at ${event.position}`);
      assert.equal(`${event.type === 'DELETED' ? 'delete' : 'put'} ${event.key}`, `${effect.kind} ${keyAt(effect.place)}`);
      assert.deepEqual(event.labels, labelsOf(effect.content), `${event.type} ${event.key} at ${event.position}`);
      if (chain.written !== undefined) assert.equal(event.position, chain.written, 'the answer names another revision');
      this.model.record(effect, event.position);
    }
  }

  /** Takes the next `count` events of the watch of everything. */
  async #take(count: number): Promise<readonly SeenEvent[]> {
    const changes = (): readonly SeenEvent[] => this.#full.events.filter(({ type }) => type !== 'BOOKMARK' && type !== 'ERROR');
    const upTo = this.#taken + count;
    if (changes().length < upTo)
      await this.#full
        .until(() => changes().length >= upTo, lateMsMax)
        .catch((error: unknown) => {
          throw new Error(`${changes().length - this.#taken} of ${count} events came`, { cause: error });
        });
    const taken = changes().slice(this.#taken, upTo);
    this.#taken = upTo;
    return taken;
  }

  /** Starts the servers again; every client then resumes from where it was. */
  async #comeBack(ended: readonly StrataProcess[]): Promise<void> {
    await Promise.all(ended.map((server) => server.resume()));
    this.#lookAround();
    const before = await this.#full.close();
    this.#watches.push(before);
    const changes = before.events.filter(({ type }) => type !== 'BOOKMARK' && type !== 'ERROR');
    const late = changes.slice(this.#taken);
    const position = changes[this.#taken - 1]?.position ?? (before.began.kind === 'behind' ? before.began.position : 0n);
    // Resumes after the last event that the model has recorded, so later ones come once more.
    const again = this.#record(`full ${++this.#ids}`, { kind: 'behind', position }, everywhere, '');
    await this.#follow(again);
    for (const event of late)
      await again.until(({ key, position: at, type }) => key === event.key && at === event.position && type === event.type);
    await this.#goOn([...this.#open]);
  }

  async #follow(recorder: WatchRecorder): Promise<void> {
    this.#full = recorder;
    this.#taken = 0;
    await recorder.opened;
  }

  /**
   * Ends each watch and resumes it at its last revision. Drops one without the end of initial
   * events.
   */
  async #goOn(open: readonly Open[]): Promise<void> {
    for (const each of open) {
      const seen = await each.recorder.close();
      this.#look(seen);
      this.#open.splice(this.#open.indexOf(each), 1);
      if (this.#isExpired(each, seen)) continue;
      const isWhole = seen.began.kind === 'behind' || seen.events.some(({ initialEventsEnd }) => initialEventsEnd);
      if (!isWhole) continue;
      this.#watches.push(seen);
      const { position } = each.recorder;
      const { scope, selector } = each;
      const recorder = this.#record(`watch ${++this.#ids}`, { kind: 'behind', position }, scope, selector, true, seen.id);
      await recorder.opened;
      const next = { ...each, recorder, isPaused: false, mayExpire: !this.model.isRemembered(position) };
      this.#open.push(next);
      await this.#caughtUp(next);
    }
  }

  /**
   * Waits until every watch has caught up with the model; then validates all that was seen in this
   * life.
   */
  async #endLife(): Promise<void> {
    for (const open of this.#open) {
      if (open.isPaused) open.mayExpire ||= !this.model.isRemembered(open.recorder.position);
      open.recorder.resume();
    }
    for (const open of this.#open) await this.#caughtUp(open);
    for (const open of this.#open.splice(0)) {
      const seen = await open.recorder.close();
      this.#look(seen);
      if (!this.#isExpired(open, seen)) this.#watches.push(seen);
    }
    const full = await this.#full.close();
    this.#look(full);
    this.#watches.push(full);
    const { truth } = this.model;
    const isComplete = truthOf(full.events).every(({ position }) => truth.some((change) => change.position === position));
    assert.ok(isComplete, 'an event came that no write caused');
    this.#violations.push(...validate({ truth, watches: this.#watches, lists: this.#lists, sightings: this.#sightings }));
    const names = [...this.#sightings, ...truth.map(({ position, key, labels }) => ({ position, what: `${key} ${labels['turn']}` }))];
    this.#names.push(...names.map((each) => ({ ...each, askedMs: 0, answeredMs: Infinity })));
    this.#sightings = [];
    this.#watches = [];
    this.#lists = [];
  }

  /** Waits for the last event that the server owes this watch. */
  async #caughtUp({ recorder, covered, mayExpire }: Open): Promise<void> {
    const isExpired = ({ type, code }: SeenEvent): boolean => mayExpire && type === 'ERROR' && code === 410;
    const { began } = recorder.seen();
    const from =
      began.kind === 'behind' ? began.position : (await recorder.until(({ initialEventsEnd }) => initialEventsEnd, lateMsMax)).position;
    const last = new Truth(this.model.truth).events(covered, from, this.#latest()).at(-1);
    if (last !== undefined)
      await recorder.until((event) => (event.type !== 'BOOKMARK' && event.position >= last.position) || isExpired(event), lateMsMax);
  }

  #isExpired({ mayExpire }: Open, { events }: SeenWatch): boolean {
    return mayExpire && events.some(({ type, code }) => type === 'ERROR' && code === 410);
  }

  async #refused(recorder: WatchRecorder, form: WatchForm): Promise<void> {
    const { type, code, position } = await recorder.until(() => true, lateMsMax);
    await recorder.close();
    if (form === 'behind') assert.equal(`${type} ${code}`, 'ERROR 410', `resumed from a revision of another life, at ${position}`);
    else assert.ok(type !== 'ERROR' || code === 504, `${type} ${code}`);
  }

  #record(id: string, began: Began, scope: RoleScope, selector: string, bookmarks = true, resumes?: string): WatchRecorder {
    const start =
      began.kind === 'behind'
        ? { resourceVersion: String(began.position) }
        : {
            sendInitialEvents: 'true',
            resourceVersionMatch: 'NotOlderThan',
            ...(began.named === undefined ? {} : { resourceVersion: String(began.named) }),
          };
    const query = { ...scopeQuery(scope, selector), ...start, ...(bookmarks ? { allowWatchBookmarks: 'true' } : {}) };
    const server = this.#servers[this.#next()]!;
    const recorder = new WatchRecorder(server.client({ http2: this.#http2 }), {
      id,
      path: scopePath(scope),
      began,
      covered: coveredBy(scope, selector),
      options: { query },
      ...(resumes === undefined ? {} : { resumes }),
    });
    // It ends with its server; `close` resolves with what it saw.
    recorder.ended().catch(() => {});
    return recorder;
  }

  #listQuery(form: ListForm, position: Position): Readonly<Record<string, string>> {
    switch (form) {
      case 'present':
        return {};
      case 'zero':
        return { resourceVersion: '0' };
      case 'exact':
        return { resourceVersion: String(position), resourceVersionMatch: 'Exact' };
      case 'notOlder':
        return { resourceVersion: String(position), resourceVersionMatch: 'NotOlderThan' };
      case 'bare':
        return { resourceVersion: String(position) };
      case 'future':
        return { resourceVersion: String(this.#latest() + 10n ** 15n), resourceVersionMatch: 'NotOlderThan' };
      default:
        return { resourceVersion: '1', resourceVersionMatch: 'NotOlderThan' };
    }
  }

  /** The status codes that the list may get. */
  #statuses(form: ListForm, position: Position, limit: number): readonly number[] {
    if (form === 'future') return [504];
    if (form === 'exact' || (form === 'bare' && limit > 0)) {
      if (!this.model.isOurs(position)) return [410, 504];
      return this.model.isRemembered(position) ? [200] : [200, 410];
    }
    return (form === 'notOlder' || form === 'bare') && !this.model.isOurs(position) ? [200, 504] : [200];
  }

  /**
   * The items of all pages; undefined if the server has rightly forgotten the first page's
   * revision.
   */
  async #otherPages(
    first: KubeList,
    query: Readonly<Record<string, string>>,
    { scope, between }: Readonly<{ scope: RoleScope; between: readonly Write[] }>,
  ): Promise<readonly KubeObject[] | undefined> {
    const items = [...first.items];
    let token = first.metadata.continue;
    if (token !== undefined && between.length > 0) await this.write(between);
    const { resourceVersion: _, resourceVersionMatch: __, ...same } = query;
    while (token !== undefined && token !== '') {
      const target = `${scopePath(scope)}?${new URLSearchParams({ ...same, continue: token }).toString()}`;
      const answer = await this.#client().raw('GET', target);
      if (answer.status === 410 && !this.model.isRemembered(positionOf(first))) return undefined;
      assert.equal(answer.status, 200, answer.text);
      const page = JSON.parse(answer.text) as KubeList;
      assert.equal(page.metadata.resourceVersion, first.metadata.resourceVersion, 'a page of another revision');
      items.push(...page.items);
      token = page.metadata.continue;
    }
    return items;
  }

  async #present(): Promise<readonly KubeObject[]> {
    return (await this.#client().list(scopePath(everywhere))).items;
  }

  #isThe(object: KubeObject, place: Place): void {
    const held = this.model.held(place);
    assert.ok(held !== undefined, `${keyAt(place)} is not there`);
    assert.equal(positionOf(object), held.position, keyAt(place));
    assert.equal(saidBy(object), saidBy(role(place, held.content)), keyAt(place));
  }

  #pick(which: number): Position {
    this.#lookAround();
    const { revisions } = this.model;
    return revisions[which % revisions.length]!;
  }

  #latest(): Position {
    return this.model.truth.at(-1)?.position ?? this.#born;
  }

  /** Adds the revisions of bookmarks that open watches have shown: clients may resume from them. */
  #lookAround(): void {
    for (const { recorder } of this.#open) this.#look(recorder.seen());
    this.#look(this.#full.seen());
  }

  #look({ events }: SeenWatch): void {
    for (const { type, position } of events) if (type === 'BOOKMARK') this.model.see(position);
  }
}

const nothing = { turn: 'none', tier: '', rules: { turn: 'none', count: 0 } } as const;

/** Whether the listed objects show the effect. */
function isThere(now: readonly KubeObject[] | undefined, { kind, place, content }: Effect): boolean {
  const object = now?.find((item) => keyAt(placeOf(item)) === keyAt(place));
  return kind === 'delete' ? object === undefined : object?.metadata.labels?.['turn'] === content.turn;
}

function placeOf({ metadata: { annotations = {}, namespace = '', name = '' } }: KubeObject): Place {
  return { shard: annotations['kcp.io/shard'] ?? '', cluster: annotations['kcp.io/cluster'] ?? '', namespace, name };
}

function patch(path: string, how: 'merge' | 'json' | 'strategic', body: unknown) {
  const types = { merge: 'merge-patch', json: 'json-patch', strategic: 'strategic-merge-patch' };
  return { method: 'PATCH', path, body, headers: { 'content-type': `application/${types[how]}+json` } };
}

function patchBody({ how, tier, turn }: Extract<Write, { kind: 'patch' }>, before: string): unknown {
  if (how !== 'json') return { metadata: { labels: { turn, tier: tier === '' ? null : tier } } };
  const untiered = before === '' ? [] : [{ op: 'remove', path: '/metadata/labels/tier' }];
  return [
    { op: 'replace', path: '/metadata/labels/turn', value: turn },
    ...(tier === '' ? untiered : [{ op: 'add', path: '/metadata/labels/tier', value: tier }]),
  ];
}
