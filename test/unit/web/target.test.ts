import { test } from '../../support/test.js';
import { parseTarget } from '../../../src/web/target.js';

function shown(text: string): string {
  const result = parseTarget(text);
  if (result.kind === 'refused') return `${result.refusal.reason}: ${result.refusal.message}`;
  const { segments, query } = result.value;
  return [...segments, ...(query.size === 0 ? [] : [JSON.stringify([...query])])].join(' ');
}

for (const [text, expected] of [
  ['/', ''],
  ['//', ''],
  ['/a/b', 'a b'],
  ['/a/b/', 'a b'],
  ['/a//b', 'a  b'],
  ['/a%20b/%C3%A4/%2A/%3f/%23/%5C', 'a b ä * ? # \\'],
  ['/a+b', 'a+b'],
  ['/a;b', 'a;b'],
  ['/.../.a/a..', '... .a a..'],
  ['/a?b/../c', 'a [["b/../c",""]]'],
  ['', 'BadRequest: invalid path: ""'],
  ['*', 'BadRequest: invalid path: "*"'],
  ['a', 'BadRequest: invalid path: "a"'],
  ['?a', 'BadRequest: invalid path: ""'],
  ['https://elsewhere/a', 'BadRequest: invalid path: "https://elsewhere/a"'],
  ['/a#b', 'BadRequest: invalid path: "/a#b"'],
  ['/a?b#c', 'BadRequest: invalid path: "/a"'],
  ['/a\\b', 'BadRequest: invalid path: "/a\\\\b"'],
  ['/a b', 'BadRequest: invalid path: "/a b"'],
  ['/a\tb', 'BadRequest: invalid path: "/a\\tb"'],
  ['/a\u007f', 'BadRequest: invalid path: "/a\u007f"'],
  ['/ä', 'BadRequest: invalid path: "/ä"'],
  ['/a?ä', 'BadRequest: invalid path: "/a"'],
  ['/%', 'BadRequest: invalid path: "/%"'],
  ['/%zz', 'BadRequest: invalid path: "/%zz"'],
  ['/%C3%28', 'BadRequest: invalid path: "/%C3%28"'],
  ['/a/.', 'BadRequest: invalid path: "/a/.": "." may not be \'.\''],
  ['/../a', 'BadRequest: invalid path: "/../a": ".." may not be \'..\''],
  ['/a/%2e%2E/', 'BadRequest: invalid path: "/a/%2e%2E/": ".." may not be \'..\''],
  ['/a%2Fb', 'BadRequest: invalid path: "/a%2Fb": "a/b" may not contain \'/\''],
  ['/100%25', 'BadRequest: invalid path: "/100%25": "100%" may not contain \'%\''],
  ['/?a=1&a=2&b&=c&&d=e=f', '[["a","1"],["a","2"],["b",""],["","c"],["d","e=f"]]'],
  ['/??a=1?', '[["?a","1?"]]'],
  ['/?a=%C3&b=%A4', 'BadRequest: invalid query: it has a broken escape, or a semicolon'],
  ['/?a+b=c+%2B%26%3D', '[["a b","c +&="]]'],
  ['/?dryRun=%C3%A4', '[["dryRun","ä"]]'],
  ['/?dryRun=%', 'BadRequest: invalid query: it has a broken escape, or a semicolon'],
  ['/?dryRun=%zz', 'BadRequest: invalid query: it has a broken escape, or a semicolon'],
  ['/?%ff=1', 'BadRequest: invalid query: it has a broken escape, or a semicolon'],
  ['/?a=1;dryRun=All', 'BadRequest: invalid query: it has a broken escape, or a semicolon'],
  ['/?a=1%3BdryRun=All', '[["a","1;dryRun=All"]]'],
] satisfies [string, string][]) {
  test(`the target ${JSON.stringify(text)} is: ${expected}`, (t) => {
    t.is(shown(text), expected);
  });
}
