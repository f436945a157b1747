import { test } from '../../support/test.js';
import { keptNames, namesOfType, parseKeptNames } from '../../../src/domain/kept-names.js';
import { aKey } from '../../support/objects.js';

test('names are listed by type, each once; identities are ignored', (t) => {
  const annotations = parseKeptNames([
    'shards.core.kcp.io=x.io/cordon',
    'shards.core.kcp.io=x.io/cordon',
    '',
    'secrets=a',
    'events.core=b',
  ]);
  t.deepEqual(annotations, [
    { group: 'core.kcp.io', resource: 'shards', name: 'x.io/cordon' },
    { group: '', resource: 'secrets', name: 'a' },
    { group: '', resource: 'events', name: 'b' },
  ]);
  const listed = keptNames({ annotations: annotations ?? [], labels: parseKeptNames(['shards.core.kcp.io=Zone']) ?? [] });

  const { resource } = aKey({ group: 'core.kcp.io', resource: 'shards', identity: 'abc' });

  t.deepEqual(namesOfType(listed, resource), { group: 'core.kcp.io', resource: 'shards', annotations: ['x.io/cordon'], labels: ['Zone'] });
  t.is(namesOfType(listed, aKey().resource), undefined);
});

test('malformed names, names that locate an object, and too many names are refused', (t) => {
  const refused = ['shards', 'shards=', '=x', 'Shards.core.kcp.io=x', 'shards=-x', 'shards=a/b/c', 'shards=x y', 'shards=kcp.io/cluster'];
  for (const text of [...refused, 'shards=kcp.io/shard', 'shards=kcp.io/path', `shards=${'x'.repeat(64)}`])
    t.is(parseKeptNames([text]), undefined, text);
  const many = Array.from({ length: 65 }, (_, i) => `shards=n${i}`);
  t.is(parseKeptNames(many), undefined);
  t.is(parseKeptNames(many.slice(1))?.length, 64);
});
