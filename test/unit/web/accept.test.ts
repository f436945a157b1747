import { test } from '../../support/test.js';
import { acceptsPartial, negotiate, type AnswerShape } from '../../../src/web/formats/accept.js';
import { fastestMs } from '../../support/fastest.js';

function shown(accept: string | undefined, asked: AnswerShape): string {
  const result = negotiate(accept, asked);
  if (result.kind === 'refused') return result.refusal.reason;
  const { encoding, form, tableVersion } = result.value;
  return `${encoding} ${form}${form === 'table' ? ` ${tableVersion}` : ''}`;
}

const partial = (as: string, v = 'v1', g = 'meta.k8s.io'): string => `application/json;as=${as};g=${g};v=${v}`;
const protobuf = 'application/vnd.kubernetes.protobuf';
const kubectl = `${partial('Table')},${partial('Table', 'v1beta1')},application/json`;

for (const [accept, asked, expected] of [
  [undefined, 'list', 'json object'],
  ['', 'list', 'json object'],
  ['application/json, */*', 'watch', 'json object'],
  ['application/json', 'one', 'json object'],
  ['*/*', 'one', 'json object'],
  ['application/*', 'one', 'json object'],
  ['APPLICATION/JSON', 'one', 'json object'],
  ['application/json;charset=utf-8', 'one', 'json object'],
  [`${protobuf},application/json`, 'list', 'json object'],
  [protobuf, 'list', 'NotAcceptable'],
  ['application/cbor', 'watch', 'NotAcceptable'],
  ['text/html', 'one', 'NotAcceptable'],
  ['application/json;q=0', 'one', 'json object'],
  ['text/html;q=0.9, application/json;q=0.1', 'one', 'json object'],
  ['text/html;q=0', 'one', 'NotAcceptable'],
  ['text/html;q=abc', 'list', 'NotAcceptable'],
  ['text/html;q=', 'watch', 'NotAcceptable'],
  [',', 'one', 'NotAcceptable'],
  [' , ,', 'list', 'NotAcceptable'],
  ['json', 'one', 'NotAcceptable'],
  ['application', 'one', 'NotAcceptable'],
  ['application/json/x', 'one', 'NotAcceptable'],
  ['*/json', 'one', 'NotAcceptable'],
  ['*', 'one', 'json object'],
  ['text/html, *; q=.2', 'one', 'json object'],
  ['application/yaml;q=x', 'one', 'yaml object'],
  ['application/yaml;q=0', 'list', 'yaml object'],
  ['application/yaml;q=-1', 'one', 'yaml object'],
  ['application/yaml;q=1,5, application/json;q=x', 'one', 'yaml object'],
  ['application/json;q=0x1, application/yaml;q=0.1', 'one', 'yaml object'],
  ['application/json;q=x, application/yaml;q=0.1', 'one', 'yaml object'],
  ['application/json;q=0.1, application/yaml;q=1e0', 'one', 'yaml object'],
  ['*/*, application/yaml', 'one', 'yaml object'],
  ['application/*, application/yaml', 'one', 'yaml object'],
  ['*/*, application/yaml;q=0.5', 'one', 'yaml object'],
  ['application/yaml;q=0.5, */*', 'one', 'json object'],
  ['application/json;v=v1', 'one', 'NotAcceptable'],
  ['application/yaml;g=meta.k8s.io', 'one', 'NotAcceptable'],
  ['application/json;stream=watch', 'watch', 'json object'],
  ['application/json;stream=junk', 'watch', 'NotAcceptable'],
  ['application/json;stream=junk, application/yaml', 'one', 'yaml object'],
  ['application/yaml;stream=watch', 'one', 'NotAcceptable'],
  ['application/json;sv=v1', 'one', 'json object'],
  ['application/json;sv=v2', 'one', 'NotAcceptable'],
  ['application/json; as="Table"; g=meta.k8s.io; v="v1"', 'one', 'json table v1'],
  ['application/yaml', 'list', 'yaml object'],
  ['application/yaml', 'one', 'yaml object'],
  ['application/yaml', 'watch', 'NotAcceptable'],
  ['application/json;q=0.5, application/yaml', 'one', 'yaml object'],
  ['application/json, application/yaml', 'one', 'json object'],
  [partial('PartialObjectMetadataList'), 'list', 'json partial'],
  [partial('PartialObjectMetadata'), 'one', 'json partial'],
  [partial('PartialObjectMetadata'), 'watch', 'json partial'],
  [partial('PartialObjectMetadata'), 'list', 'NotAcceptable'],
  [partial('PartialObjectMetadataList'), 'one', 'NotAcceptable'],
  [partial('PartialObjectMetadataList'), 'watch', 'NotAcceptable'],
  [partial('PartialObjectMetadata', 'v1beta1'), 'one', 'NotAcceptable'],
  [partial('PartialObjectMetadata', 'v1', 'other'), 'one', 'NotAcceptable'],
  [
    `${protobuf};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,${partial('PartialObjectMetadataList')},application/json`,
    'list',
    'json partial',
  ],
  [kubectl, 'list', 'json table v1'],
  [kubectl, 'watch', 'json table v1'],
  [partial('Table', 'v1beta1'), 'one', 'json table v1beta1'],
  [partial('Table', 'v2'), 'one', 'NotAcceptable'],
  [`${partial('Junk')},application/json`, 'one', 'json object'],
  ['application/yaml;as=Table;g=meta.k8s.io;v=v1', 'one', 'NotAcceptable'],
] satisfies [string | undefined, AnswerShape, string][]) {
  test(`for ${asked}, ${accept === undefined ? 'no Accept' : `Accept ${accept}`} is answered ${expected}`, (t) => {
    t.is(shown(accept, asked), expected);
  });
}

test('metadata alone is sent if the chosen clause asks for it', (t) => {
  const inProtobuf = `${protobuf};as=PartialObjectMetadata;g=meta.k8s.io;v=v1`;

  t.true(acceptsPartial(partial('PartialObjectMetadataList'), 'list'));
  t.true(acceptsPartial(`${inProtobuf},${partial('PartialObjectMetadata')}`, 'one'));
  t.false(acceptsPartial(inProtobuf, 'one'));
  t.false(acceptsPartial(`${inProtobuf},application/json`, 'one'));
  t.false(acceptsPartial(`application/json,${partial('PartialObjectMetadata')}`, 'watch'));
  t.false(acceptsPartial(kubectl, 'list'));
  t.false(acceptsPartial(undefined, 'list'));
});

test('a header with more clauses than are read is refused as a whole, and quickly', (t) => {
  t.is(shown(`${'a/b,'.repeat(63)}application/json`, 'one'), 'json object');
  t.is(shown(`application/json${',a/b'.repeat(64)}`, 'one'), 'NotAcceptable');

  const header = `${'a/b,'.repeat(100_000)}application/json`;

  t.is(shown(header, 'one'), 'NotAcceptable');
  t.true(fastestMs(() => shown(header, 'one'), 3) < 100);
});

test('a long weight is parsed quickly, whether or not it is a number', (t) => {
  const long = '0'.repeat(62_000);

  t.is(shown(`application/json;q=${long}x`, 'one'), 'json object');
  t.is(shown(`application/json;q=${long}x,application/yaml;q=${long}1`, 'one'), 'yaml object');
  t.true(fastestMs(() => shown(`application/json;q=${long}x`, 'one'), 3) < 100);
});
