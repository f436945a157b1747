import { rounds } from '../../support/sizes.js';
import { test } from '../../support/test.js';
import fc from 'fast-check';
import { CacheError } from '../../../src/domain/errors.js';
import { ListCutter } from '../../../src/kube/list-cutter.js';
import { cutWatchEvent, lines } from '../../../src/kube/watch-event.js';

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** The bytes in chunks that end at these places. */
function chunked(bytes: Uint8Array, places: readonly number[]): readonly Uint8Array[] {
  const cuts = [0, ...places.map((place) => place % (bytes.length + 1)).toSorted((a, b) => a - b), bytes.length];
  return cuts.slice(1).map((cut, i) => bytes.subarray(cuts[i], cut));
}

async function* each(chunks: readonly Uint8Array[]): AsyncGenerator<Uint8Array> {
  yield* chunks;
}

const places = fc.array(fc.nat(), { maxLength: 8 });

test('a list is cut into exactly the texts of its items, wherever chunks end and whatever surrounds the items', (t) => {
  const item = fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 2 })).map((object) => JSON.stringify(object));
  const property = fc.property(fc.array(item, { maxLength: 6 }), places, fc.boolean(), fc.boolean(), (items, cuts, pretty, behind) => {
    const space = pretty ? '\n  ' : '';
    const metadata = `"metadata":{"continue":"a,é😀]}","resourceVersion":"12"}`;
    const all = `"items":${space}[${space}${items.join(`,${space}`)}${space}]`;
    const text = `{"kind":"XList","other":[["items"]],${space}${(behind ? [all, metadata] : [metadata, all]).join(',')}}`;
    const cutter = new ListCutter(1_000_000);

    const found = chunked(encoder.encode(text), cuts).flatMap((chunk) => cutter.push(chunk).map((bytes) => decoder.decode(bytes)));

    return (
      JSON.stringify(found) === JSON.stringify(items) && cutter.end().resourceVersion === '12' && cutter.end().continueToken === 'a,é😀]}'
    );
  });

  t.notThrows(() => fc.assert(property, { numRuns: rounds(300) }));
});

function ended(text: string): unknown {
  const cutter = new ListCutter(64);
  const items = cutter.push(encoder.encode(text)).length;
  return { items, ...cutter.end() };
}

test('a list that breaks off, holds too much or has no resourceVersion is refused', (t) => {
  t.throws(() => ended('{"items":[{"a":1},'), { message: /broke off/ });
  t.throws(() => ended(''), { message: /broke off/ });
  t.throws(() => ended('{"items":null,"metadata":{}}'), { message: /has no resourceVersion/ });
  t.throws(() => ended(`{"items":[{"a":"${'x'.repeat(64)}`), { message: /more than 64 bytes/ });
  t.throws(() => ended(`{"other":"${'x'.repeat(300_000)}`), { message: /the answer is not a list/ });
});

/** A reader that took one of these answers for a list would remove all its objects. */
for (const [what, text] of [
  ['has no items', '{"metadata":{"resourceVersion":"5"}}'],
  ['has an object of items', '{"items":{"a":{}},"metadata":{"resourceVersion":"5"}}'],
  ['has a text of items', '{"items":"[{}]","metadata":{"resourceVersion":"5"}}'],
  ['has a number among its items', '{"items":[{},1],"metadata":{"resourceVersion":"5"}}'],
  ['has null among its items', '{"items":[null,{}],"metadata":{"resourceVersion":"5"}}'],
  ['has a text among its items', '{"items":["{}"],"metadata":{"resourceVersion":"5"}}'],
  ['has a list among its items', '{"items":[[{}]],"metadata":{"resourceVersion":"5"}}'],
  ['writes its name for items with an escape', '{"\\u0069tems":[{}],"metadata":{"resourceVersion":"5"}}'],
  ['has no items, and then some by a name with an escape', '{"items":[],"\\u0069tems":[{}],"metadata":{"resourceVersion":"5"}}'],
  ['has items by a name that only ends so', '{"x\\"items":[{}],"metadata":{"resourceVersion":"5"}}'],
  ['has items twice', '{"items":[{}],"items":[{}],"metadata":{"resourceVersion":"5"}}'],
  ['goes on, and does not', '{"items":[{}],"metadata":{"resourceVersion":"5","continue":"c","continue":null}}'],
  ['has metadata twice', '{"metadata":{"continue":"c","resourceVersion":"5"},"items":[{}],"metadata":{"resourceVersion":"5"}}'],
  ['begins its items with a comma', '{"items":[,{}],"metadata":{"resourceVersion":"5"}}'],
  ['ends its items with a comma', '{"items":[{},],"metadata":{"resourceVersion":"5"}}'],
  ['has two commas between items', '{"items":[{},,{}],"metadata":{"resourceVersion":"5"}}'],
  ['has no comma between items', '{"items":[{} {}],"metadata":{"resourceVersion":"5"}}'],
  ['has an odd space among its items', '{"items":[{},\\f{}],"metadata":{"resourceVersion":"5"}}'],
  ['goes on with a number', '{"items":[{}],"metadata":{"resourceVersion":"5","continue":7}}'],
  ['has more, and does not go on', '{"items":[{}],"metadata":{"resourceVersion":"5","remainingItemCount":1}}'],
  ['is an array', '[{"items":[],"metadata":{"resourceVersion":"5"}}]'],
  ['has a number as its resourceVersion', '{"items":[],"metadata":{"resourceVersion":5}}'],
] as const)
  test(`an answer that ${what} is refused, and not taken for an empty list`, (t) => {
    t.throws(() => ended(text), { instanceOf: CacheError });
  });

test('a continue token may be long, because a name in it may be', (t) => {
  const token = 'x'.repeat(67_000);
  t.like(ended(`{"items":[{}],"metadata":{"resourceVersion":"5","continue":"${token}"}}`) as object, { items: 1, continueToken: token });
});

test('the variants that servers write are accepted: null items, no continue token, an empty one', (t) => {
  const envelope = { apiVersion: '', resourceVersion: '5', continueToken: '' };
  t.deepEqual(ended('{"items":null,"metadata":{"resourceVersion":"5"}}'), { items: 0, ...envelope });
  t.deepEqual(ended('{"items":[ ],"metadata":{"resourceVersion":"5","continue":""}}'), { items: 0, ...envelope });
  t.deepEqual(
    ended('{"items":[\r\n\t{},\n{}],"metadata":{"resourceVersion":"5","continue":"c","remainingItemCount":3},"apiVersion":"v1"}'),
    {
      items: 2,
      apiVersion: 'v1',
      resourceVersion: '5',
      continueToken: 'c',
    },
  );
});

test('a watch is cut at its newlines, wherever chunks end; text after the last newline is no event', async (t) => {
  await t.notThrowsAsync(
    fc.assert(
      fc.asyncProperty(fc.array(fc.string({ maxLength: 20 }).map((line) => line.replaceAll('\n', 'é'))), places, async (all, cuts) => {
        const found: string[] = [];
        const bytes = encoder.encode(`${all.map((line) => `${line}\n`).join('')}rest`);
        for await (const batch of lines(each(chunked(bytes, cuts)), 1_000)) found.push(...batch.map((line) => decoder.decode(line)));
        return JSON.stringify(found) === JSON.stringify(all);
      }),
      { numRuns: rounds(200) },
    ),
  );
});

test('a line without an end is given up at its bound', async (t) => {
  const endless = lines(each([encoder.encode('x'.repeat(60)), encoder.encode('x'.repeat(60))]), 100);

  await t.throwsAsync(endless.next(), { message: /more than 100 bytes/ });
});

test('an event is cut as servers usually write it, and in every other way that JSON allows', (t) => {
  const cut = (line: string): [string, string] => {
    const { type, object } = cutWatchEvent(encoder.encode(line));
    return [type, decoder.decode(object)];
  };

  t.deepEqual(cut('{"type":"ADDED","object":{"a":"}"}}'), ['ADDED', '{"a":"}"}']);
  t.deepEqual(cut('{"type":"BOOKMARK","object":{}}'), ['BOOKMARK', '{}']);
  t.deepEqual(cut('{ "object" : {"a":1} , "type" : "DELETED" }'), ['DELETED', '{"a":1}']);
  t.throws(() => cut('{"type":"SHOUTED","object":{}}'), { message: /SHOUTED/ });
  t.throws(() => cut('{"object":{}}'), { message: /not an event/ });
});
