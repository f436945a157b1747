import { test } from '../../support/test.js';
import { duplicates, hasDuplicates } from '../../../src/json/duplicate-members.js';
import { NotJson, scanObject } from '../../../src/json/object-text.js';

const scan = (text: string, membersMax?: number) => scanObject(new TextEncoder().encode(text), 100, membersMax);

test('names whose bytes have the same hash are distinguished, however often they occur', (t) => {
  for (let i = 0; i < 3; i += 1) {
    const { top } = scan('{"Aa":1,"BB":2,"AaBB":3,"BBAa":4,"é":5,"\\u0041a":6}');

    t.deepEqual(
      top.list.map(({ name }) => name),
      ['Aa', 'BB', 'AaBB', 'BBAa', 'é', 'Aa'],
    );
  }
});

test('a repeated name is found among few members and among many', (t) => {
  const many = Array.from({ length: 100 }, (_, i) => `"m${i}":1`).join(',');

  t.false(hasDuplicates(scan(`{${many}}`)));
  t.true(hasDuplicates(scan(`{${many},"m7":2}`)));
  t.true(hasDuplicates(scan('{"metadata":{"labels":{"a":"1","b":"2","a":"3"}}}')));
  t.deepEqual(duplicates(scan('{"metadata":{"labels":{"a":"1","a":"3"}},"x":1,"x":2}')), ['x', 'metadata.labels.a']);
});

test('line breaks between tokens are found, and those in strings are not counted', (t) => {
  t.true(scan('{"a":\n1}').hasLineBreaks);
  t.true(scan('{"a":1}\r').hasLineBreaks);
  t.false(scan('{"a":"\\n", "b":\t1}').hasLineBreaks);
});

test('members are counted in the object, its metadata, its labels and its annotations, and not below', (t) => {
  const text = '{"metadata":{"labels":{"a":"1"},"annotations":{"b":"2"}},"spec":{"c":1,"d":2,"e":{"f":3}}}';

  t.notThrows(() => scan(text, 6));
  t.throws(() => scan(text, 5), { instanceOf: NotJson });
});
