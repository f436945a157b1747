/**
 * Strata must accept exactly what Go's decoders accept, by their recorded verdicts, except for
 * deliberate refusals. `test/clients/decodable.test.ts` asks the decoders again.
 */
import { test } from '../../support/test.js';
import { readValue, Unreadable } from '../../../src/store/etcd/stored-values.js';
import { scanDecodable } from '../../../src/json/decodable.js';
import { parseJson } from '../../../src/json/json-parser.js';
import { NotJson, scanObject } from '../../../src/json/object-text.js';
import { admitted, recordedVerdicts, roleKey } from '../../support/json/go-verdicts.js';
import { minefield } from '../../support/json/minefield.js';
import { objectCases } from '../../support/json/object-cases.js';

const verdicts = recordedVerdicts();

/** Where Strata deliberately refuses more than Go. */
const stricter: readonly (readonly [why: string, names: RegExp])[] = [
  [
    'what is not UTF-8: Go puts U+FFFD in its place, and stores would differ',
    /^(?:spec: )?[ni] (?:not UTF-8|cut off UTF-8|Latin-1|overlong|surrogate as UTF-8|continuation|beyond|byte in|invalid seq)/,
  ],
  ['exponents whose fifth digit is not the last: Go versions differ in how many they read', /^number 1000.*e-100400 /],
  ['a generation below 0: upstream refuses it', /^metadata "generation":-9223372036854775808$/],
  [
    'times that no server of Kubernetes writes',
    /^metadata "creationTimestamp":".*(?:\+24:00|,5Z|T1:02:03Z|^metadata "creationTimestamp":"0000-02-29.*)"$/,
  ],
  ['29 February of the year 0', /0000-02-29/],
  ['a label or annotation that is null: readers differ', /^metadata "(?:labels|annotations)":\{"a":null\}$/],
  ['a name that stands twice in an owner reference or managed field', /"ownerReferences":\[\{"uid":"x","uid":"y"\}\]/],
  ['another spelling of kind, apiVersion or metadata', /^member "(?:Kind|Metadata|METADATA)":/],
  [
    'another spelling of what ObjectMeta has: encoding/json takes it for that',
    /^metadata (?:"(?:Name|LABELS)":5|"ownerReferences":\[\{"uid":"x","UID")/,
  ],
  [
    'a member that stands twice, the last time as null or empty: Go keeps the first value of a struct, others the last',
    /^(?:metadata "name":null|member "(?:apiVersion|metadata)":(?:null|\{\}))$/,
  ],
];

function isDecided(name: string): boolean {
  return stricter.some(([, names]) => names.test(name));
}

test('each case has a unique name and a recorded verdict', (t) => {
  for (const [kind, cases] of [
    ['values', minefield],
    ['sent', objectCases],
  ] as const) {
    t.is(new Set(cases.map(({ name }) => name)).size, cases.length);
    t.deepEqual(cases.map(({ name }) => name).toSorted(), Object.keys(verdicts[kind]).toSorted());
  }
});

test('a document is parsed as JSON exactly where Go accepts it as JSON, except for text that is not UTF-8', (t) => {
  for (const { name, text } of minefield) {
    const isParsed = parseJson(text).kind === 'parsed';
    const isValid = !/syntax/.test(verdicts.values[name] ?? '');
    if (isValid && isDecided(name)) t.false(isParsed, name);
    else t.is(isParsed, isValid, name);
  }
});

test('an object that Go cannot decode is never accepted from a pusher, and one that Go can is refused only deliberately', (t) => {
  for (const { name, text } of objectCases) {
    const { kind } = admitted(text);
    if (kind === 'parsed') t.is(verdicts.stored[name], '', name);
    else t.true(verdicts.sent[name] !== '' || isDecided(name), name);
  }
});

test('the same objects count as readable in etcd', (t) => {
  for (const { name, text } of objectCases) {
    const isAdmitted = admitted(text).kind === 'parsed';
    // These cases break rules of admission; Go can decode them.
    if (/"generation":-9|"uid":7/.test(name)) continue;
    const read = (): unknown => readValue(roleKey, text);
    if (isAdmitted) t.notThrows(read, name);
    else t.throws(read, { instanceOf: Unreadable }, name);
  }
});

test('each deliberate refusal still has a case that Go accepts', (t) => {
  for (const [why, names] of stricter) {
    const refusedHere = [...objectCases, ...minefield].some(
      ({ name }) => names.test(name) && (verdicts.sent[name] ?? verdicts.values[name]) === '' && verdicts.stored[name] === undefined,
    );
    t.true(refusedHere, why);
  }
});

test('a refusal quotes the number, however long it is', (t) => {
  const refusal = (number: string): string | undefined =>
    t.throws(() => scanDecodable(new TextEncoder().encode(`{"a":[${number}]}`), 10), { instanceOf: NotJson })?.message;

  t.is(refusal('-1E400'), 'cannot unmarshal number 1E400 into Go value of type float64');
  t.is(refusal('9'.repeat(1_000_000)), `cannot unmarshal number ${'9'.repeat(32)}... into Go value of type float64`);
});

test('a number too large for a float64 is found wherever it stands, and text without one has none', (t) => {
  const overflowAt = (text: string): number | undefined => scanObject(new TextEncoder().encode(text), 100).overflowAt;

  for (const text of ['{"a":1E400}', '{"a":[0,-1E400 ]}', '{"metadata":{"x":{"y":1E400}}}', '{"metadata":{"managedFields":[1E400]}}'])
    t.is(overflowAt(text), text.indexOf('1E400'), text);
  t.is(overflowAt(`{"a":[${'1e308,'.repeat(10_000)}1e308]}`), undefined);
  t.is(overflowAt('{"1E400":"1E400"}'), undefined);
});
