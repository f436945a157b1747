/**
 * Work on whole documents: what it costs grows with their length, up to seconds for the longest, where everything else costs microseconds.
 * Pure, so that it can be done in whichever thread has the time; documents go in and come out as bytes.
 *
 * The *weight* of a task decides where it is done: the bytes that it reads, or more where they cost more than their length.
 *
 * Bounds: `valuesMax` in each document, because a tree takes some 200 bytes for a value of two, and a refusal is gentler than
 * the end of a thread's memory. Usual text has a value in fifteen bytes.
 */
import { Buffer } from 'node:buffer';
import { badRequest, Refused, unreachable } from './errors.js';
import { parseJson } from './json-parser.js';
import { applyJsonPatch, parseJsonPatch } from './json-patch.js';
import { formatJson, isJsonObject, measureJson, type JsonTree } from './json-tree.js';
import { applyMergePatch } from './merge-patch.js';
import { attempt, mustParse, type Parsed } from './parsed.js';
import { sameContent } from './same-content.js';
import { applyStrategicMergePatch } from './strategic-merge-patch.js';
import { countValues } from './value-count.js';
import { formatYaml, parseYaml } from './yaml.js';

const valuesMax = 500_000;

/** The patches that a cache takes; a strategic one merges by the schemas of its API group. */
export type PatchLanguage = Readonly<{ kind: 'json' } | { kind: 'merge' } | { kind: 'strategic'; group: string }>;

/** `target` is a JSON document, and so is what comes out, of at most `bytesMax` characters. */
export type PatchTask = Readonly<{ kind: 'patch'; target: Uint8Array; patch: Uint8Array; language: PatchLanguage; bytesMax: number }>;

export type HeavyTask =
  | PatchTask
  | Readonly<{ kind: 'json from yaml'; text: Uint8Array; bytesMax: number }>
  | Readonly<{ kind: 'yaml from json'; text: Uint8Array }>
  | Readonly<{ kind: 'compare'; left: Uint8Array; right: Uint8Array }>;

/** The document that comes out; of a comparison, whether both have the same content. */
export type HeavyResult<Task extends HeavyTask> = Task extends { kind: 'compare' } ? boolean : Uint8Array;

export function performTask<Task extends HeavyTask>(task: Task): Parsed<HeavyResult<Task>> {
  return attempt(() => perform(task) as HeavyResult<Task>);
}

/** The bytes that a task holds on to. */
export function bytesOf(task: HeavyTask): number {
  switch (task.kind) {
    case 'patch':
      return task.target.length + task.patch.length;
    case 'compare':
      return task.left.length + task.right.length;
    default:
      return task.text.length;
  }
}

/** YAML takes a hundred times as long as JSON, and a `copy` in a JSON patch up to 3 MiB of work for a few bytes. */
export function weightOf(task: HeavyTask): number {
  switch (task.kind) {
    case 'patch':
      return task.language.kind === 'json' && mayCopy(task.patch) ? Infinity : bytesOf(task);
    case 'compare':
      return bytesOf(task);
    default:
      return Infinity;
  }
}

function perform(task: HeavyTask): Uint8Array | boolean {
  switch (task.kind) {
    case 'patch':
      return patched(task);
    case 'json from yaml':
      return bounded(formatJson(mustParse(parseYaml(Buffer.from(task.text).toString()))), task.bytesMax);
    case 'yaml from json':
      return Buffer.from(formatYaml(mustParse(parseJson(task.text))));
    case 'compare':
      return comparable(task.left, task.right) && sameContent(task.left, task.right);
    default:
      return unreachable(task);
  }
}

/** What cannot be compared counts as different: that costs an event, and is never wrong. */
function comparable(...documents: readonly Uint8Array[]): boolean {
  return documents.every((text) => countValues(text, valuesMax) <= valuesMax);
}

function patched({ target, patch, language, bytesMax }: PatchTask): Uint8Array {
  for (const text of [target, patch]) if (countValues(text, valuesMax) > valuesMax) throw tooManyValues;
  const change = patchIn(mustParse(parseJson(patch)), language);
  const after = change(mustParse(parseJson(target)));
  if (measureJson(after, bytesMax) > bytesMax) throw tooLarge(bytesMax);
  return bounded(formatJson(after), bytesMax);
}

function patchIn(tree: JsonTree, language: PatchLanguage): (target: JsonTree) => JsonTree {
  if (language.kind === 'json') {
    const operations = mustParse(parseJsonPatch(tree));
    return (target) => mustParse(applyJsonPatch(target, operations));
  }
  if (!isJsonObject(tree)) throw new Refused(badRequest('a patch must be an object'));
  if (language.kind === 'merge') return (target) => applyMergePatch(target, tree);
  return (target) => mustParse(applyStrategicMergePatch(target, tree, language.group));
}

function bounded(text: string, bytesMax: number): Uint8Array {
  const bytes = Buffer.from(text);
  if (bytes.length > bytesMax) throw tooLarge(bytesMax);
  return bytes;
}

/** Spelled out or, letter by letter, as escapes. */
function mayCopy(patch: Uint8Array): boolean {
  const bytes = Buffer.from(patch.buffer, patch.byteOffset, patch.byteLength);
  return bytes.includes('copy') || bytes.includes('\\u');
}

const tooManyValues = new Refused({
  reason: 'RequestEntityTooLarge',
  message: `an object is patched if it and its patch have at most ${valuesMax} values each`,
});

function tooLarge(bytesMax: number): Refused {
  return new Refused({ reason: 'RequestEntityTooLarge', message: `Request entity too large: limit is ${bytesMax}` });
}
