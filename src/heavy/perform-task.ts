/**
 * The work on whole documents. Pure, so that any thread can do it.
 *
 * The *weight* of a task decides which thread does it. It is the number of bytes that the task
 * reads, or more if their number does not show the cost.
 *
 * Bounds: `valuesMax` in each document, because a tree needs some 200 bytes for a value of two
 * bytes. A refusal is better than a thread that exhausts its memory. Usual text has one value in
 * fifteen bytes.
 */
import { Buffer } from 'node:buffer';
import { badRequest, entityTooLarge, Refused, unreachable } from '../domain/errors.js';
import type { HeavyResult, HeavyTask, PatchLanguage, PatchTask } from '../domain/heavy-task.js';
import { attempt, mustParse, type Parsed } from '../domain/parsed.js';
import { parseJson } from '../json/json-parser.js';
import { applyJsonPatch, parseJsonPatch } from '../json/json-patch.js';
import { formatJson, isJsonObject, measureJson, type JsonTree } from '../json/json-tree.js';
import { applyMergePatch } from '../json/merge-patch.js';
import { sameContent } from '../json/same-content.js';
import { applyStrategicMergePatch } from '../json/strategic-merge-patch.js';
import { countValues } from '../json/value-count.js';
import { formatYaml, parseYaml } from '../json/yaml.js';

const valuesMax = 500_000;

export function performTask<Task extends HeavyTask>(task: Task): Parsed<HeavyResult<Task>> {
  return attempt(() => runTask(task) as HeavyResult<Task>);
}

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

/**
 * YAML takes a hundred times as long as JSON. A `copy` in a JSON patch can cause up to 3 MiB of
 * work with a few bytes.
 */
export function weightOf(task: HeavyTask): number {
  switch (task.kind) {
    case 'patch':
      return task.language.kind === 'json' && mayCopy(task.patch) ? Infinity : bytesOf(task);
    case 'compare':
    case 'strict json':
      return bytesOf(task);
    default:
      return Infinity;
  }
}

function runTask(task: HeavyTask): Uint8Array | boolean {
  switch (task.kind) {
    case 'patch':
      return patched(task);
    case 'json from yaml':
      return bounded(formatJson(mustParse(parseYaml(Buffer.from(task.text).toString(), task))), task.bytesMax);
    case 'strict json':
      return withoutDuplicates(task.text);
    case 'yaml from json':
      return Buffer.from(formatYaml(mustParse(parseJson(task.text, { surrogates: 'replaced' }))));
    case 'compare':
      // Documents with too many values count as different. At worst, that costs a superfluous
      // event.
      return hasFewValues(task.left, task.right) && sameContent(task.left, task.right);
    default:
      return unreachable(task);
  }
}

function hasFewValues(...documents: readonly Uint8Array[]): boolean {
  return documents.every((text) => countValues(text, valuesMax) <= valuesMax);
}

function withoutDuplicates(text: Uint8Array): Uint8Array {
  if (!hasFewValues(text)) throw tooManyValues;
  mustParse(parseJson(text, { duplicates: 'refused' }));
  return text;
}

function patched({ target, patch, language, bytesMax, duplicates = 'last' }: PatchTask): Uint8Array {
  if (!hasFewValues(target, patch)) throw tooManyValues;
  const change = patchIn(mustParse(parseJson(patch, { duplicates })), language, duplicates === 'refused');
  const after = change(mustParse(parseJson(target)));
  if (measureJson(after, bytesMax) > bytesMax) throw entityTooLarge(bytesMax);
  return bounded(formatJson(after), bytesMax);
}

function patchIn(tree: JsonTree, language: PatchLanguage, isStrict: boolean): (target: JsonTree) => JsonTree {
  if (language.kind === 'json') {
    const operations = mustParse(parseJsonPatch(tree, { isStrict }));
    return (target) => mustParse(applyJsonPatch(target, operations));
  }
  if (!isJsonObject(tree)) throw new Refused(badRequest('a patch must be an object'));
  if (language.kind === 'merge') return (target) => applyMergePatch(target, tree);
  return (target) => mustParse(applyStrategicMergePatch(target, tree, language));
}

function bounded(text: string, bytesMax: number): Uint8Array {
  const bytes = Buffer.from(text);
  if (bytes.length > bytesMax) throw entityTooLarge(bytesMax);
  return bytes;
}

/** A `copy` may be spelled with letters or with escapes. */
function mayCopy(patch: Uint8Array): boolean {
  const bytes = Buffer.from(patch.buffer, patch.byteOffset, patch.byteLength);
  return bytes.includes('copy') || bytes.includes('\\u');
}

const tooManyValues = new Refused({
  reason: 'RequestEntityTooLarge',
  message: `the object or its patch has more than ${valuesMax} values, too many to patch or to decode strictly`,
});
