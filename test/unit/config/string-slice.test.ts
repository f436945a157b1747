import { etcdOptions } from '../../../src/config/options/etcd-options.js';
import { agentOptions, proxyOptions } from '../../../src/config/options/command-options.js';
import { linkOptions } from '../../../src/config/options/link-options.js';
import { readStringSlice } from '../../../src/config/options/string-slice.js';
import { readUpstreamFlags } from '../../../src/config/kcp-flags/upstream-flags.js';
import { frontProxyFlags } from '../../../src/config/kcp-flags/front-proxy-flags.js';
import { test } from '../../support/test.js';

/**
 * How pflag 1.0.9 reads these texts, as the program in test/clients/list-flags printed; undefined:
 * refused.
 */
const read: Readonly<Record<string, readonly string[] | undefined>> = {
  '': [],
  a: ['a'],
  'a,b': ['a', 'b'],
  '"a,b"': ['a,b'],
  '"a","b"': ['a', 'b'],
  '"a""b"': ['a"b'],
  '""': [''],
  ',': ['', ''],
  'a,': ['a', ''],
  ' "a"': undefined,
  '"a" ,b': undefined,
  'a"b': undefined,
  '"a': undefined,
  '"a""': undefined,
  "'a,b'": ["'a", "b'"],
};

test('a list is read as pflag reads it: quotation marks keep commas and are dropped, and other text is refused', (t) => {
  for (const [text, texts] of Object.entries(read)) t.deepEqual(readStringSlice(text), texts, text);
});

test('two halves of a quoted text in separate flags are refused, not joined', (t) => {
  t.is(readStringSlice('"a\nb"'), undefined);
  t.deepEqual(readStringSlice('"a,b"\nc'), ['a,b', 'c']);
});

test('groups that kcp-operator names in quotation marks are dropped', (t) => {
  const given = readUpstreamFlags(['--authentication-drop-groups="system:masters,system:kcp:admin"'], frontProxyFlags);
  const flags = given.kind === 'read' ? given.flags : {};

  const value = ['system:masters', 'system:kcp:admin'];
  t.deepEqual(proxyOptions.droppedGroups.read(flags['authentication-drop-groups']), { kind: 'read', value });
});

test('a common name in quotation marks that contains a comma is refused, not read as two names', (t) => {
  t.is(proxyOptions.requestheaderNames.read('"one,other"').kind, 'wrong');
});

for (const { flag, read: readOption, acceptedValues } of [
  proxyOptions.requestheaderNames,
  proxyOptions.passedGroups,
  proxyOptions.droppedGroups,
  proxyOptions.corsOrigins,
  etcdOptions.etcdServers,
  linkOptions.parentUrls,
  agentOptions.caches,
]) {
  test(`--${flag} is read as pflag reads lists, and other text is refused`, (t) => {
    const text = flag.startsWith('authentication') || flag.startsWith('request') ? 'one' : 'https://localhost:1';
    t.deepEqual(readOption(`"${text}"`), readOption(text));
    t.is(readOption(text).kind, 'read');
    for (const wrong of [`"${text}`, `${text}"`, `"${text}" `])
      t.deepEqual(readOption(wrong), { kind: 'wrong', problem: `must be ${acceptedValues}` });
  });
}
