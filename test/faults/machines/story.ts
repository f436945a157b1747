/**
 * All that a store can show: its objects, and every change since its birth, as texts. Tests compare
 * it byte by byte with what a damaged store serves.
 */
import { KubeError, type KubeClient, type KubeObject, type WatchEvent } from '../../support/kube-client.js';
import { keyOf, positionOf, type Position } from '../../support/watch-history.js';

export type Story = Readonly<{ born: Position; position: Position; objects: ReadonlyMap<string, string>; changes: readonly string[] }>;

/**
 * `wrong`: the server served something that never was. `incomplete`: something is missing without
 * an error. `refused`: the server answered with an error.
 */
export type Verdict = Readonly<{ kind: 'whole' | 'refused' | 'rolled back' | 'incomplete' | 'wrong'; why: string }>;

const quietMs = 1_500;

export async function readStory(client: KubeClient, path: string, born: Position): Promise<Story> {
  const list = await client.list(path);
  const objects = new Map(list.items.map((item) => [keyOf(item), textOf(item)]));
  return { born, position: positionOf(list), objects, changes: await changesSince(client, path, { after: born, upTo: positionOf(list) }) };
}

/** Judges what a server serves that runs on a copy of the store. */
export async function compareStory(client: KubeClient, path: string, story: Story): Promise<Verdict> {
  try {
    const list = await client.list(path);
    const found = new Map(list.items.map((item) => [keyOf(item), textOf(item)]));
    const isWhole = found.size === story.objects.size && [...found].every(([key, text]) => story.objects.get(key) === text);
    const changes = await changesSince(client, path, { after: story.born, upTo: positionOf(list) });
    const wrong = firstThatNeverWas(changes, story.changes);
    if (wrong !== undefined) return { kind: 'wrong', why: `the watch served ${wrong}` };
    const falseKey = [...found].find(([key, text]) => !story.changes.some((change) => change.endsWith(`\0${key}\0${text}`)))?.[0];
    if (falseKey !== undefined) return { kind: 'wrong', why: `the list has ${falseKey} as it never was` };
    if (isWhole)
      return changes.length === story.changes.length
        ? { kind: 'whole', why: '' }
        : { kind: 'incomplete', why: `the watch showed ${changes.length} of ${story.changes.length} changes` };
    return await rolledBack(client, path, { story, found, changes });
  } catch (error) {
    if (error instanceof KubeError && error.status < 500) return { kind: 'wrong', why: String(error) };
    return { kind: 'refused', why: String(error) };
  }
}

/** An older state is no fault if a client that has seen a newer one gets an error (G9). */
async function rolledBack(
  client: KubeClient,
  path: string,
  { story, found, changes }: Readonly<{ story: Story; found: ReadonlyMap<string, string>; changes: readonly string[] }>,
): Promise<Verdict> {
  const then = new Map<string, string>();
  for (const change of changes) {
    const [type, key, text] = change.split('\0') as [string, string, string];
    if (type === 'DELETED') then.delete(key);
    else then.set(key, text);
  }
  const isConsistent = then.size === found.size && [...found].every(([key, text]) => then.get(key) === text);
  if (!isConsistent || changes.length === story.changes.length)
    return { kind: 'incomplete', why: `the list has ${found.size} of ${story.objects.size} objects` };
  const query = { resourceVersion: String(story.position), allowWatchBookmarks: 'true' };
  for await (const event of client.watch(path, { query, signal: AbortSignal.timeout(quietMs) }))
    if (event.type === 'ERROR') return { kind: 'rolled back', why: `${changes.length} of ${story.changes.length} changes are left` };
  return { kind: 'incomplete', why: 'acknowledged changes are gone, and a client that has seen them gets no error' };
}

async function changesSince(
  client: KubeClient,
  path: string,
  { after, upTo }: Readonly<{ after: Position; upTo: Position }>,
): Promise<string[]> {
  const changes: string[] = [];
  if (after === upTo) return changes;
  const query = { resourceVersion: String(after), allowWatchBookmarks: 'true' };
  const signal = AbortSignal.timeout(10_000);
  for await (const event of client.watch(path, { query, signal })) {
    if (event.type === 'ERROR') throw new Error(`the watch ended with ${event.text}`);
    if (event.type !== 'BOOKMARK') changes.push(changeText(event));
    if (positionOf(event.object) >= upTo) return changes;
  }
  throw new Error(`the watch showed ${changes.length} changes and then nothing`);
}

/**
 * The first change that is not in the story, or comes after a later one; undefined if none does.
 */
function firstThatNeverWas(changes: readonly string[], story: readonly string[]): string | undefined {
  let at = 0;
  for (const change of changes) {
    const found = story.indexOf(change, at);
    if (found < 0) return difference(change, story[at] ?? '');
    at = found + 1;
  }
  return undefined;
}

function changeText({ type, object }: WatchEvent): string {
  return [type, keyOf(object), textOf(object)].join('\0');
}

function textOf(object: KubeObject): string {
  return JSON.stringify(object);
}

function difference(served: string, held: string): string {
  const at = [...served].findIndex((character, index) => character !== held[index]);
  const around = (text: string): string => JSON.stringify(text.slice(Math.max(0, at - 20), at + 20));
  return `${around(served)} for ${around(held)}, ${at} characters into ${served.split('\0', 2).join(' ')}`;
}
