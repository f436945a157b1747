/**
 * JSON on which parsers disagree, after the cases of Nicolas Seriot's "Parsing JSON is a
 * minefield", written anew. y: valid JSON. n: invalid. i: RFC 8259 leaves it to the parser. Bytes
 * that are not UTF-8 are in hex.
 */
export type MinefieldCase = Readonly<{ name: string; text: Uint8Array }>;

// prettier-ignore
const grammatical: Readonly<Record<string, string>> = {
  'array of arrays with spaces': '[[]   ]', 'array of an empty string': '[""]', 'empty array': '[]', 'array ending with a newline': '["a"]\n',
  'array of false': '[false]', 'array of all types': '[null, 1, "1", {}]', 'array of null': '[null]', 'array with a line break before its end': '[1\n]',
  'array with a space before it': ' [1]', 'array with several nulls': '[1,null,null,null,2]', 'array with a space behind it': '[2] ',
  'number': '[123e65]', '0e+1': '[0e+1]', '0e1': '[0e1]', 'space behind a number': '[ 4]', 'near 0': '[-0.000000000000000000000000000000000000000000000000000000000000000000000000000001]',
  'number of 20 digits': '[20]', 'minus 0': '[-0]', 'negative int': '[-123]', 'minus one': '[-1]', 'minus 0.0': '[-0.0]', 'capital e': '[1E22]', 'capital e, minus': '[1E-2]', 'capital e, plus': '[1E+2]',
  'exponent': '[123e45]', 'fraction and exponent': '[123.456e78]', 'e minus': '[1e-2]', 'e plus': '[1e+2]', 'simple int': '[123]', 'simple fraction': '[123.456789]',
  'object': '{"asd":"sdf", "dfg":"fgh"}', 'object with one member': '{"asd":"sdf"}', 'name twice': '{"a":"b","a":"c"}', 'name and value twice': '{"a":"b","a":"b"}',
  'empty object': '{}', 'empty name': '{"":0}', 'name with an escaped NUL': '{"foo\\u0000bar": 42}', 'extreme numbers': '{ "min": -1.0e+28, "max": 1.0e+28 }',
  'long strings': `{"x":[{"id": "${'x'.repeat(40)}"}], "id": "${'x'.repeat(40)}"}`, 'object of an array': '{"a":[]}', 'escaped names': '{"title":"\\u041f\\u043e\\u043b" }', 'object with newlines': '{\n"a": "b"\n}',
  'escapes of one, two and three bytes': '["\\u0060\\u012a\\u12AB"]', 'surrogate pair, escaped': '["\\uD801\\udc37"]', 'two surrogate pairs': '["\\ud83d\\ude39\\ud83d\\udc8d"]', 'all short escapes': '["\\"\\\\\\/\\b\\f\\n\\r\\t"]',
  'backslash and u': '["\\\\u0000"]', 'backslash and quote': '["\\""]', 'comments in a string': '["a/*b*/c/*d//e"]', 'backslashes': '["\\\\a"]', 'backslash and n': '["\\\\n"]', 'escaped control character': '["\\u0012"]',
  'escaped noncharacter': '["\\uFFFF"]', 'string in an array': '["asd"]', 'string in an array, spaces': '[ "asd"]', 'last noncharacters, escaped': '["\\uDBFF\\uDFFF"]', 'new noncharacters, escaped': '["new\\u00A0line"]',
  'noncharacter, escaped': '["\\uD83F\\uDFFE"]', 'noncharacter U+10FFFF': '["\u{10ffff}"]', 'noncharacter U+FFFF': '["\uffff"]', 'noncharacter U+1BFFF': '["\u{1bfff}"]', 'escaped NUL': '["\\u0000"]', 'one space': '" "', 'pi': '["π"]', 'two bytes': '["\u06de"]',
  'simple ASCII': '["asd "]', 'U+2028': '["\u2028"]', 'U+2029': '["\u2029"]', 'three bytes': '["\u0821"]', 'U+12345': '["\\u0061\\u30af\\u30EA\\u30b9"]', 'DEL': '["\x7f"]', 'DEL, alone': '["a\x7fa"]',
  'escaped quote': '["\\u0022"]', 'escaped backslash': '["\\u005C"]', 'U+10FFFE': '["\\uDBFF\\uDFFE"]', 'U+200B': '["\\u200B"]', 'U+2064': '["\\u2064"]', 'U+FDD0': '["\\uFDD0"]', 'U+FFFE': '["\\uFFFE"]', 'capital hex': '["\\uA66D"]',
  'four bytes': '["\u{1d11e}"]', 'many bytes': '["€\u{1d11e}"]', 'lonely false': 'false', 'lonely int': '42', 'lonely negative fraction': '-0.1', 'lonely null': 'null', 'lonely string': '"asd"', 'lonely true': 'true', 'empty string, alone': '""',
  'newline at the end': '["a"]\n', 'true in an array': '[true]', 'spaces in an array': ' [] ', 'tab before': '\t[]', 'carriage return before': '\r[]', 'all white space': ' \t\r\n[ \t\r\n1 \t\r\n] \t\r\n', 'name like a prototype': '{"__proto__":{"x":1},"constructor":1}',
  'solidus, escaped': '["\\/"]', 'space in a name': '{"a b":1}', 'no space at all': '{"a":[1,{"b":null}]}',
};

// prettier-ignore
const ungrammatical: Readonly<Record<string, string>> = {
  '1 and true without a comma': '[1 true]', 'colon instead of a comma': '["": 1]', 'comma behind an array': '[""],', 'comma and number': '[,1]', 'two commas': '[1,,2]', 'two commas at the end': '["x",,]', 'closed twice': '["x"]]', 'comma at the end': '["",]',
  'not closed': '["x"', 'inner array without a comma': '[3[4]]', 'items without a comma': '["a" "b"]', 'comma alone': '[,]', 'minus alone in an array': '[-]', 'missing value': '[   , ""]', 'newlines, not closed': '["a",\n4\n,1,', 'number and comma': '[1,]',
  'number and commas': '[1,,]', 'spaces and a vertical tab': '["\u000ba"\\f]', 'star inside': '[*]', 'unclosed': '[""', 'unclosed, comma': '[1,', 'unclosed with newlines': '[1,\n1\n,1', 'unclosed with an object': '[{}', 'incomplete false': '[fals]', 'incomplete null': '[nul]', 'incomplete true': '[tru]',
  'NUL behind a number': '123\u0000', '++': '[++1234]', '+1': '[+1]', '+Inf': '[+Inf]', '-01': '[-01]', '-1.0.': '[-1.0.]', '-2.': '[-2.]', '-NaN': '[-NaN]', '.-1': '[.-1]', '.2e-3': '[.2e-3]', '0.1.2': '[0.1.2]', '0.3e': '[0.3e]', '0.3e+': '[0.3e+]', '0.e1': '[0.e1]', '0E': '[0E]', '0E+': '[0E+]', '0e': '[0e]', '0e+': '[0e+]',
  '1.0e': '[1.0e]', '1.0e+': '[1.0e+]', '1.0e-': '[1.0e-]', '1 000': '[1 000.0]', '1eE2': '[1eE2]', '2.e3': '[2.e3]', '2.e+3': '[2.e+3]', '2.e-3': '[2.e-3]', '9.e+': '[9.e+]', 'Inf': '[Inf]', 'NaN': '[NaN]', 'full-width digit': '[\uff11]', 'expression': '[1+2]', 'hex': '[0x1]', 'hex of two digits': '[0x42]', 'Infinity': '[Infinity]',
  'mixture': '[0e+-1]', '-123.123foo': '[-123.123foo]', '-Infinity': '[-Infinity]', '-foo': '[-foo]', 'minus, space': '[- 1]', '-012': '[-012]', '-.123': '[-.123]', '-1x': '[-1x]', 'fraction without whole': '[.123]', '1.': '[1.]', '1.2a-3': '[1.2a-3]', '1.8011670033376514H-308': '[1.8011670033376514H-308]', '012': '[012]', '00': '[00]', '-00': '[-00]', '01.5': '[01.5]', '1_000': '[1_000]', '1e': '[1e]', '1e5.5': '[1e5.5]', '0b1': '[0b1]', '1f': '[1f]', '1n': '[1n]',
  'bad value': '["x", truth]', 'brackets in an object': '{[: "x"}\n', 'comma instead of a colon': '{"x", null}', 'two colons': '{"x"::"b"}', 'emoji as a name': '{\u{1f1e8}\u{1f1ed}}', 'garbage at the end': '{"a":"a" 123}', 'quotes of another kind': "{key: 'value'}", 'missing colon': '{"a" b}', 'missing name': '{:"b"}', 'missing semicolon': '{"a" "b"}', 'missing value of a name': '{"a":', 'no colon': '{"a"', 'number as a name': '{1:1}', 'number as a name, comma': '{9999E9999:1}',
  'several commas': '{"id":0,,,,,}', 'single quotes': "{'a':0}", 'comma at the end of an object': '{"id":0,}', 'comment behind': '{"a":"b"}/**/', 'open comment behind': '{"a":"b"}/**//', 'slash behind': '{"a":"b"}/', 'slashes behind': '{"a":"b"}//', 'two commas in a row': '{"a":"b",,"c":"d"}', 'unquoted name': '{a: "b"}', 'unterminated value': '{"a":"a', 'single string in an object': '{ "foo" : "bar", "a" }', 'hash behind': '{"a":"b"}#', 'comment inside': '{/*c*/"a":1}',
  'lonely space': ' ', 'surrogate, escape cut off': '["\\uD800\\"]', 'surrogate, u': '["\\uD800\\u"]', 'surrogate, u1': '["\\uD800\\u1"]', 'surrogate, u1x': '["\\uD800\\u1x"]', 'accent in a literal': '[é]', 'backslash and NUL': '["\\\u0000"]', 'escape x': '["\\x00"]', 'escaped backslash, open': '["\\\\\\"]', 'escaped tab character': '["\\\t"]', 'escaped emoji': '["\\\u{1f300}"]', 'incomplete escape': '["\\"]', 'incomplete escape u': '["\\u00A"]', 'incomplete pair': '["\\uD834\\uDd"]', 'incomplete pair, cut off': '["\\uD800\\uD800\\x"]',
  'escape a': '["\\a"]', 'escape u and letters': '["\\uqqqq"]', 'octal escape': '["\\101"]', 'escape of a line break': '["\\\n"]', 'unquoted escape': '[\\n]', 'single quote in an array': "['single quote']", 'no quotes': 'abc', 'start of an escape': '["\\', 'NUL character': '["a\u0000a"]', 'newline character': '["new\nline"]', 'tab character': '["\t"]', 'U+001F': '["a\u001fa"]', 'escape u, capital': '"\\UA66D"', 'garbage behind a string': '""x', 'carriage return in a string': '["a\rb"]', 'backspace in a string': '["a\bb"]',
  'angle bracket': '<.>', 'null in angle brackets': '[<null>]', 'array and x': '[1]x', 'array and quote': '[1]"x', 'array, closed by a brace': '[1}', 'ASCII dots': '[…]', 'capitals': '[True]', 'close': '1]', 'comma instead of a brace': '{"x": true,', 'two arrays': '[][]', 'end': ']', 'BOM, cut off': '\ufeff', 'BOM and object': '\ufeff{}', 'BOM and array': '\ufeff[1]', 'nothing': '', 'NUL in an array': '[\u0000]', 'number and garbage': '2@', 'object and comma': '{},', 'object, closed twice': '{}}', 'object followed': '{"": "x", {}}',
  'object behind': '{"a": true} "x"', 'open array and apostrophe': "['", 'open array and comma': '[,', 'open array and object': '[{', 'open array and string': '["a', 'open array and string, closed': '["a"', 'open object': '{', 'open object, closed by a bracket': '{]', 'open object and comma': '{,', 'open object and array': '{[', 'open object and string': '{"a', "open object and apostrophe": "{'a'", 'open and open': '["\\{["\\{["\\{["\\{', 'open array': '[', 'single star': '*', 'brace at the end': '{"a":"b"}#{}', 'escaped BOM': '\\ufeff[]', 'eacute': 'é',
  'unclosed false': '[ false, nao', 'unclosed true': '[ true, tru', 'unclosed null': '[ false, nul', 'unclosed object': '{"asd":"asd"', 'unicode letter': 'å', 'word joiner': '[\u2060]', 'form feed': '[\u000c]', 'vertical tab': '[\u000b]', 'no-break space': '[\u00a0]', 'line separator': '[\u20281]', 'null, too long': '[nulll]', 'TRUE': '[TRUE]', 'undefined': '[undefined]', 'line comment': '[1]//x', 'function': '[f()]', 'plus in front': '+1', 'dot': '.', 'minus': '-',
};

// prettier-ignore
const leftToReaders: Readonly<Record<string, string>> = {
  'huge exponent': '[0.4e00669999999999999999999999999999999999999999999999999999999999999999999999999999999969999999006]', 'huge negative exponent': '[-1e+9999]', 'huge exponent of 1': '[1.5e+9999]', 'very small': '[123e-10000000]', 'negative exponent': '[123123e-100000]', 'positive exponent': '[123123e100000]', 'negative, huge': '[-123123e100000]', 'large int': '[100000000000000000000]', 'large negative int': '[-123123123123123123123123123123]', 'very large int': `[${'9'.repeat(120)}]`,
  'high surrogate': '["\\uDADA"]', 'low surrogate second missing': '["\\uD888\\u1234"]', 'incomplete pair and escape': '["\\uD800\\n"]', 'invalid pair': '["\\uDd1ea"]', 'two high surrogates': '["\\uD800\\uD800"]', 'high surrogate and letters': '["\\ud800abc"]', 'high surrogate alone': '["\\ud800"]', 'pair the wrong way': '["\\uDd1e\\uD834"]', 'low surrogate': '["\\uDFAA"]', 'surrogate in a name': '{"\\ud800":1}', 'BOM in a string': '["\ufeff"]', '500 open arrays': `${'['.repeat(500)}${']'.repeat(500)}`,
};

// prettier-ignore
const bytes: Readonly<Record<string, string>> = {
  'n not UTF-8 in an array': '5bff5d', 'n not UTF-8 behind a number': '5b31e55d', 'n not UTF-8 in an exponent': '5b3165e5315d', 'n not UTF-8 in an int': '5b3132e55d', 'n not UTF-8 behind a digit': '5b30e55d', 'n not UTF-8 escaped': '5b225ce5225d', 'n not UTF-8 behind u': '5b225c75e5225d', 'n lonely byte': 'e5', 'n BOM cut off': 'efbb', 'n BOM cut off, object': 'efbb7b7d',
  'i not UTF-8 in a string': '5b22ff225d', 'i cut off UTF-8': '5b22e0ff225d', 'i Latin-1': '5b22e9225d', 'i overlong, two bytes': '5b22c0af225d', 'i overlong, six bytes': '5b22fc8380808080225d', 'i overlong, cut off': '5b22fc83bfbfbfbf225d', 'i surrogate as UTF-8': '5b22eda080225d', 'i continuation alone': '5b2281225d', 'i beyond U+10FFFF': '5b22f4bfbfbf225d', 'i byte in a name': '7b22ff223a317d',
  'i UTF-16, little endian': 'fffe5b002200e90022005d00', 'i UTF-16, without BOM': '5b002200e90022005d00', 'i UTF-16, big endian': '005b0022 00e9 0022005d'.replaceAll(' ', ''), 'i invalid sequence': '5b22e697a5d188fa225d',
};

const encoder = new TextEncoder();

function named(kind: 'y' | 'n' | 'i', texts: Readonly<Record<string, string>>): readonly MinefieldCase[] {
  return Object.entries(texts).map(([name, text]) => ({ name: `${kind} ${name}`, text: encoder.encode(text) }));
}

export const minefield: readonly MinefieldCase[] = [
  ...named('y', grammatical),
  ...named('n', ungrammatical),
  ...named('i', leftToReaders),
  ...Object.entries(bytes).map(([name, hex]) => ({ name, text: new Uint8Array(Buffer.from(hex, 'hex')) })),
  { name: 'n 100,000 open arrays', text: encoder.encode('['.repeat(100_000)) },
  { name: 'n 50,000 open arrays and objects', text: encoder.encode('[{"":'.repeat(50_000)) },
];
