import { test } from '../../support/test.js';
import { idleLinks } from '../../../src/config/files/policy-file.js';
import { loadSettings } from '../../../src/config/settings.js';

function warnings(config: string): readonly string[] {
  const settings = loadSettings({ flags: { config: 'strata.yaml' }, environment: {}, readFile: () => config });
  return idleLinks(settings).map((warning) => warning.split(':')[0] ?? '');
}

test('the only warnings are for a parent without rules and for rules without a parent', (t) => {
  const link = 'urls: [https://localhost:6443], certFile: a.crt, keyFile: a.key';

  t.deepEqual(warnings(''), []);
  t.deepEqual(warnings(`parent: {${link}, follow: [{types: ['*']}]}`), []);
  t.deepEqual(warnings(`parent: {${link}}`), ['parent.urls is given without parent.forward or parent.follow']);
  t.deepEqual(warnings(`parent: {forward: [{types: ['*']}]}`), ['parent.forward or parent.follow is given without parent.urls']);
});

test('an accept that names no shard lets nothing in and gives a warning; one rule that names a shard is enough', (t) => {
  t.deepEqual(warnings(`children: {eu: {accept: [{types: ['*']}]}}`), ['children.eu.accept names no shard']);
  t.deepEqual(warnings(`children: {eu: {accept: [{types: ['*']}, {shards: [amber], types: [secrets]}]}}`), []);
  t.deepEqual(warnings(`children: {'*': {accept: [{shards: ['*']}]}, eu: {offer: [{types: ['*']}]}}`), []);
});
