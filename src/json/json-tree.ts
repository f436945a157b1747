/**
 * A lossless JSON value. Patches, YAML and comparisons of values use it instead of JavaScript
 * objects.
 *
 * T1 A number is its text: int64 beyond 2^53, `1.0` and `1e3` survive.
 * T2 An object is a Map. It keeps the order of members ("10" does not move before "b"), and
 *    `__proto__` and `constructor` are ordinary names.
 * T3 A tree never changes. A patch copies the containers along its paths and shares the rest, so
 *    members that it does not touch stay as they were.
 * T4 Nothing here recurses, because text may nest 10,000 levels deep, and Node's stack may be
 *    too short for that.
 *
 * lossless-json keeps numbers and `__proto__`, but its objects have Object.prototype, so each
 * look-up needs hasOwn. It also moves integer-like names to the front, and parses, compares and
 * prints by recursion (T2, T4).
 */
export type JsonTree = null | boolean | string | JsonNumber | JsonArray | JsonObject;
export type JsonNumber = Readonly<{ number: string }>;
export type JsonArray = readonly JsonTree[];
export type JsonObject = ReadonlyMap<string, JsonTree>;

export function isJsonObject(tree: JsonTree | undefined): tree is JsonObject {
  return tree instanceof Map;
}

export function isJsonArray(tree: JsonTree | undefined): tree is JsonArray {
  return Array.isArray(tree);
}

export function isJsonNumber(tree: JsonTree | undefined): tree is JsonNumber {
  return typeof tree === 'object' && tree !== null && !isJsonArray(tree) && !isJsonObject(tree);
}

/** Compact JSON text. Lone surrogates are written as escapes, so the text is always valid UTF-8. */
export function formatJson(tree: JsonTree): string {
  let text = '';
  for (const piece of piecesOf(tree)) text += piece;
  return text;
}

/** The length of the compact text, counted only until it exceeds `max`. */
export function measureJson(tree: JsonTree, max: number): number {
  let length = 0;
  for (const piece of piecesOf(tree)) {
    length += piece.length;
    if (length > max) break;
  }
  return length;
}

/** The order of members does not matter, and numbers are compared exactly. */
export function equalJson(left: JsonTree, right: JsonTree): boolean {
  const pairs: [JsonTree, JsonTree][] = [[left, right]];

  for (let pair = pairs.pop(); pair !== undefined; pair = pairs.pop()) {
    const [a, b] = pair;
    if (a === b) continue;

    if (isJsonArray(a)) {
      if (!isJsonArray(b) || a.length !== b.length) return false;
      for (const [index, item] of a.entries()) pairs.push([item, b[index] as JsonTree]);
    } else if (isJsonObject(a)) {
      if (!isJsonObject(b) || a.size !== b.size) return false;
      for (const [name, member] of a) {
        const other = b.get(name);
        if (other === undefined) return false;
        pairs.push([member, other]);
      }
    } else if (!isJsonNumber(a) || !isJsonNumber(b) || canonicalNumber(a) !== canonicalNumber(b)) {
      return false;
    }
  }
  return true;
}

const exponentDigitsMax = 15;

/**
 * One text per value: 1, 1.0, 10e-1 and 1e0 all become `1e0`; -0 is 0. It uses no float and no
 * BigInt, so the work is linear in the text. A number whose exponent has more than 15 digits stays
 * as it is, and equals only itself.
 */
export function canonicalNumber({ number }: JsonNumber): string {
  const [, sign, whole, fraction = '', exponent = '0'] = numberPattern.exec(number) ?? [];
  if (whole === undefined || exponent.length > exponentDigitsMax) return number;

  const all = whole + fraction;
  let start = 0;
  let end = all.length;
  while (start < end && all[start] === '0') start++;
  while (start < end && all[end - 1] === '0') end--;
  if (start === end) return '0e0';

  const power = Number(exponent) - fraction.length + (all.length - end);
  return `${sign}${all.slice(start, end)}e${power}`;
}

const numberPattern = /^(-?)([0-9]+)(?:\.([0-9]+))?(?:[eE]([-+]?[0-9]+))?$/;

type Frame = { readonly names: Iterator<string> | undefined; readonly values: Iterator<JsonTree>; readonly close: string; first: boolean };

function* piecesOf(root: JsonTree): Generator<string> {
  const frames: Frame[] = [];
  let tree: JsonTree | undefined = root;

  for (;;) {
    if (isJsonArray(tree)) {
      yield '[';
      frames.push({ names: undefined, values: tree.values(), close: ']', first: true });
    } else if (isJsonObject(tree)) {
      yield '{';
      frames.push({ names: tree.keys(), values: tree.values(), close: '}', first: true });
    } else if (tree !== undefined) {
      yield isJsonNumber(tree) ? tree.number : JSON.stringify(tree);
    }

    const frame = frames.at(-1);
    if (frame === undefined) return;
    const next = frame.values.next();
    if (next.done === true) {
      yield frame.close;
      frames.pop();
      tree = undefined;
      continue;
    }
    if (!frame.first) yield ',';
    frame.first = false;
    if (frame.names !== undefined) yield `${JSON.stringify(frame.names.next().value)}:`;
    tree = next.value;
  }
}
