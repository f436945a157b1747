/**
 * The readers of JSON. Their structure must agree with JSON.parse, and they must keep every other
 * byte.
 */
import { test } from '../../support/test.js';
import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { compose } from '../../../src/json/compose.js';
import { parseJson } from '../../../src/json/json-parser.js';
import { equalJson, formatJson } from '../../../src/json/json-tree.js';
import { member, NotJson, scanObject, valueText, type ObjectText } from '../../../src/json/object-text.js';
import { sameContent, stringsDiffer } from '../../../src/json/same-content.js';
import { admitCreate } from '../../../src/intake/admit/admit-create.js';
import { aCreate, textOf } from '../../support/intake/bodies.js';
import { aKey } from '../../support/objects.js';
import { corpus, fuzz, mutated, mutatedBytes } from './fuzzing.js';

const sizeOf = ({ length }: { length: number }): number => length;
const objects = fc.oneof(
  mutated(corpus('objects')),
  fc.json(),
  fc.json().map((text) => `{"metadata":${text},"a":${text}}`),
);

function native(text: string): Readonly<{ value: unknown }> | undefined {
  try {
    return { value: JSON.parse(text) as unknown };
  } catch {
    return undefined;
  }
}

function scanned(bytes: Uint8Array): ObjectText | undefined {
  try {
    return scanObject(bytes, 1_000);
  } catch (error) {
    if (error instanceof NotJson) return undefined;
    throw error;
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

test('the scanner accepts exactly the objects that JSON.parse accepts, and finds their members in place', (t) => {
  const law = (text: string): void => {
    const bytes = Buffer.from(text);
    const [expected, found] = [native(bytes.toString()), scanned(bytes)];
    if ((found !== undefined) !== (expected !== undefined && isRecord(expected.value))) throw new Error('only one of them accepts it');
    if (found === undefined || expected === undefined || !isRecord(expected.value)) return;

    for (const { name } of found.top.list) {
      const last = member(found.top, name);
      const value: unknown = last === undefined ? undefined : JSON.parse(valueText(bytes, last));
      if (!isDeepStrictEqual(value, Object.getOwnPropertyDescriptor(expected.value, name)?.value))
        throw new Error(`another value of ${name}`);
    }
    if (new Set(found.top.list.map(({ name }) => name)).size !== Object.keys(expected.value).length) throw new Error('other members');
  };

  fuzz(t, objects, law, { share: 4, sizeOf, msPer10kB: 20 });
});

test('any bytes are admitted as an object or refused as BadRequest or Invalid', (t) => {
  const law = (bytes: Uint8Array): void => {
    const admitted = admitCreate(bytes, aCreate());
    if (admitted.kind === 'refused' && !['BadRequest', 'Invalid'].includes(admitted.refusal.reason))
      throw new Error(admitted.refusal.reason);
  };

  fuzz(t, fc.oneof(mutatedBytes(corpus('objects').map((text) => Buffer.from(text))), fc.uint8Array()), law, {
    share: 2,
    sizeOf,
    msPer10kB: 30,
  });
});

test('the lossless tree accepts exactly what JSON.parse accepts, means the same, and is written and parsed without change', (t) => {
  const law = (text: string): void => {
    const [expected, found] = [native(text), parseJson(text)];
    if ((found.kind === 'parsed') !== (expected !== undefined)) throw new Error('only one of them accepts it');
    if (found.kind === 'refused' || expected === undefined) return;
    const written = formatJson(found.value);
    if (!isDeepStrictEqual(JSON.parse(written), expected.value)) throw new Error(`it became ${written}`);
    const again = parseJson(written);
    if (again.kind === 'refused' || formatJson(again.value) !== written || !equalJson(again.value, found.value))
      throw new Error('read otherwise');
  };

  fuzz(t, objects, law, { share: 2, sizeOf, msPer10kB: 20 });
});

test('a body keeps every byte that is not part of its place, its version or its revision', (t) => {
  const law = (spec: string): void => {
    const text = `{"kind":"APIExport","metadata":{"name":"one","finalizers":[ "x" ]},"spec": ${spec} ,"apiVersion":"a/v1"}`;
    const body = compose(scanObject(Buffer.from(text), 1_000), { place: aKey(), apiVersion: 'a/v1', version: 'v1', metadata: {} });
    const shown = textOf({ body }, '7');
    if (!shown.includes(`"finalizers":[ "x" ]`) || !shown.endsWith(`,"spec": ${spec} ,"apiVersion":"a/v1"}`)) throw new Error(shown);
    const { metadata } = JSON.parse(shown) as { metadata: { resourceVersion: string; annotations: Record<string, string> } };
    if (metadata.resourceVersion !== '7' || metadata.annotations['kcp.io/shard'] !== 'amber') throw new Error(shown);
  };
  const specs = mutated(corpus('objects')).filter((text) => native(text) !== undefined && !/[\n\r\ufffd]/.test(text));

  fuzz(t, specs, law, { sizeOf, msPer10kB: 20 });
});

test('sameContent finds two texts equal exactly if their values are equal, in whatever order members come', (t) => {
  const law = ([text, other]: readonly [string, string]): void => {
    const value: unknown = JSON.parse(text);
    const bytes = Buffer.from(text);
    const respelled = JSON.stringify(turned(value), null, 1).replaceAll(/(?<=[[,:\s])(-?[1-9]\d*)(?=[,\]}\s]|$)/g, (digits) => digits);
    if (!sameContent(bytes, Buffer.from(respelled))) throw new Error(`${respelled} says something else`);
    if (stringsDiffer(bytes, Buffer.from(respelled))) throw new Error(`${respelled} has other strings`);
    const isEqual = isDeepStrictEqual(value, JSON.parse(other));
    if (sameContent(bytes, Buffer.from(other)) !== isEqual) throw new Error(isEqual ? 'they say the same' : 'they do not say the same');
    if (isEqual && stringsDiffer(bytes, Buffer.from(other))) throw new Error('their strings are the same');
  };
  const texts = fc.json({ maxDepth: 4 }).map((text) => JSON.stringify(JSON.parse(text.replaceAll('-0', '0'))));

  fuzz(t, fc.tuple(texts, texts), law, { sizeOf: ([text, other]) => text.length + other.length, msPer10kB: 30 });
});

/** The same value with the members of its objects in another order. */
function turned(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(turned);
  if (!isRecord(value)) return value;
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([name, each]) => [name, turned(each)]),
  );
}
