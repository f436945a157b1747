import { test } from '../../support/test.js';
import fc from 'fast-check';
import { parseAnyPath } from '../../../src/domain/cluster.js';
import { annotationsOf, labelsOf } from '../../../src/domain/object-metadata.js';
import {
  clusterEntries,
  clusterEntryName,
  formatPathEntry,
  parsePathEntry,
  pathEntryBody,
  pathOfEntry,
  workspaceEntries,
  type PathEntry,
} from '../../../src/domain/path-entry.js';
import { clusterName, shardName } from '../../support/objects.js';

const encoder = new TextEncoder();

function read(
  resource: 'logicalclusters' | 'workspaces',
  text: string | Uint8Array,
  name = resource === 'workspaces' ? 'team' : clusterEntryName,
) {
  const parsed = parsePathEntry({ resource }, name, typeof text === 'string' ? encoder.encode(text) : text);
  return parsed.kind === 'parsed' ? parsed.value : parsed.refusal.message;
}

const names = fc.stringMatching(/^[a-z0-9]{1,16}$/);
const entries: fc.Arbitrary<PathEntry> = fc.oneof(
  fc.record({
    kind: fc.constant('cluster' as const),
    path: fc.option(
      fc.array(names, { minLength: 1, maxLength: 5 }).map((segments) => segments.join(':')),
      { nil: undefined },
    ),
    isParentless: fc.boolean(),
    isMigrating: fc.boolean(),
  }),
  fc.record({
    kind: fc.constant('workspace' as const),
    target: fc.oneof(
      fc.tuple(names, fc.option(names, { nil: undefined })).map(([cluster, shard]) => ({
        cluster: clusterName(cluster),
        shard: shard === undefined ? undefined : shardName(shard),
      })),
      names.map((host) => ({ url: `https://${host}.example.com/clusters/${host}` })),
    ),
    isUnavailable: fc.boolean(),
  }),
);

test('an entry is read as it was written, and has fewer than 150 bytes', (t) => {
  fc.assert(
    fc.property(entries, (entry) => {
      const bytes = formatPathEntry(entry);
      t.deepEqual(read(entry.kind === 'cluster' ? 'logicalclusters' : 'workspaces', bytes), entry);
      t.true(bytes.length < 150);
    }),
  );
});

test('an entry leaves out members that are false or absent', (t) => {
  const texts = (
    [
      { kind: 'cluster', path: 'root:org', isParentless: false, isMigrating: false },
      { kind: 'cluster', path: undefined, isParentless: true, isMigrating: true },
      { kind: 'workspace', target: { cluster: clusterName('2hkmx5l3ov9dd7vw'), shard: undefined }, isUnavailable: false },
      { kind: 'workspace', target: { cluster: clusterName('2hkmx5l3ov9dd7vw'), shard: shardName('birch') }, isUnavailable: false },
      { kind: 'workspace', target: { url: 'https://mounts.example.com/a' }, isUnavailable: true },
    ] as const
  ).map((entry) => new TextDecoder().decode(formatPathEntry(entry)));
  t.deepEqual(texts, [
    '{"path":"root:org"}',
    '{"parentless":true,"migrating":true}',
    '{"cluster":"2hkmx5l3ov9dd7vw"}',
    '{"cluster":"2hkmx5l3ov9dd7vw","shard":"birch"}',
    '{"url":"https://mounts.example.com/a","unavailable":true}',
  ]);
});

test('an entry that no agent sends is refused with the reason', (t) => {
  const refused: readonly (readonly ['logicalclusters' | 'workspaces', string | Uint8Array, RegExp])[] = [
    ['workspaces', '', /not JSON/],
    ['workspaces', '[]', /not a JSON object/],
    ['workspaces', 'null', /not a JSON object/],
    ['workspaces', new Uint8Array([0x7b, 0xff, 0x7d]), /not JSON/],
    ['workspaces', '{}', /either a cluster or a url/],
    ['workspaces', '{"cluster":"one","url":"https://a"}', /either a cluster or a url/],
    ['workspaces', '{"cluster":7}', /not a string/],
    ['workspaces', '{"cluster":""}', /not the name of a logical cluster/],
    ['workspaces', '{"cluster":"Root"}', /not the name of a logical cluster/],
    ['workspaces', '{"cluster":"root:org"}', /not the name of a logical cluster/],
    ['workspaces', '{"cluster":"system:admin"}', /not the name of a logical cluster/],
    ['workspaces', '{"cluster":"*"}', /not the name of a logical cluster/],
    ['workspaces', '{"cluster":"one","unavailable":"yes"}', /neither true nor false/],
    ['workspaces', '{"cluster":"one","shard":""}', /not the name of a shard/],
    ['workspaces', '{"cluster":"one","shard":"*"}', /not the name of a shard/],
    ['workspaces', '{"cluster":"one","shard":"Amber"}', /not the name of a shard/],
    ['workspaces', '{"cluster":"one","shard":null}', /not a string/],
    ['workspaces', '{"cluster":"one","shard":["amber"]}', /not a string/],
    ['workspaces', '{"url":"http://mounts.example.com/"}', /https/],
    ['workspaces', '{"url":"https://user:secret@mounts.example.com/"}', /credentials/],
    ['workspaces', '{"url":"https://user@mounts.example.com/"}', /credentials/],
    ['workspaces', '{"url":"https://mounts.example.com/?token=secret"}', /query/],
    ['workspaces', '{"url":"https://mounts.example.com/#a"}', /fragment/],
    ['workspaces', '{"url":"file:///etc/passwd"}', /https/],
    ['workspaces', '{"url":"mounts.example.com"}', /https/],
    ['workspaces', '{"url":" https://mounts.example.com/\\n"}', /https/],
    ['workspaces', '{"url":"https:\\\\\\\\mounts.example.com"}', /https/],
    ['workspaces', '{"url":"https://mounts.example.com/\\u001b[31m"}', /https/],
    ['workspaces', '{"url":"https://mounts.example.com/a/../b"}', /https/],
    ['workspaces', `{"url":"https://mounts.example.com/${'a'.repeat(2_048)}"}`, /https/],
    ['workspaces', `{"cluster":"one","note":"${'a'.repeat(4_096)}"}`, /at most 4096/],
    ['logicalclusters', '{"path":"root:"}', /not a canonical path/],
    ['logicalclusters', '{"path":"system:admin"}', /not a canonical path/],
    ['logicalclusters', '{"path":["root"]}', /not a string/],
    ['logicalclusters', '{"parentless":1}', /neither true nor false/],
    ['logicalclusters', '{"migrating":"root"}', /neither true nor false/],
  ];
  for (const [resource, text, why] of refused) {
    const message = read(resource, text);
    t.regex(typeof message === 'string' ? message : 'it was taken', why, String(text));
  }
  for (const name of ['Team', 'a.b', 'a:b', '-a', 'a-', 'a'.repeat(64), ''])
    t.regex(String(read('workspaces', '{"cluster":"one"}', name)), /not a segment/);
  t.regex(String(read('logicalclusters', '{}', 'other')), /named cluster/);
});

test('an unknown member is no reason to refuse an entry', (t) => {
  t.deepEqual(read('workspaces', '{"cluster":"one","type":"root:universal"}'), {
    kind: 'workspace',
    target: { cluster: clusterName('one'), shard: undefined },
    isUnavailable: false,
  });
});

test('an entry gives its logical cluster a path only if that cluster has no owner and the path has several segments', (t) => {
  const cluster = { kind: 'cluster', path: 'home:alice', isParentless: true, isMigrating: false } as const;
  t.is(pathOfEntry(cluster), 'home:alice' as never);
  t.is(pathOfEntry({ ...cluster, isParentless: false }), undefined);
  t.is(pathOfEntry({ ...cluster, path: undefined }), undefined);
  t.is(pathOfEntry({ ...cluster, path: 'root' }), undefined);
  t.is(pathOfEntry({ kind: 'workspace', target: { cluster: clusterName('one'), shard: undefined }, isUnavailable: false }), undefined);
});

test('a stored entry has neither labels nor annotations', (t) => {
  const body = pathEntryBody(formatPathEntry({ kind: 'cluster', path: 'root:org', isParentless: false, isMigrating: false }));
  t.is(labelsOf(body).size, 0);
  t.is(annotationsOf(body).size, 0);
});

test('a policy or an object may name a path of one segment or of several', (t) => {
  t.is(parseAnyPath('root'), 'root');
  t.is(parseAnyPath('root:tenant-a'), 'root:tenant-a');
  for (const text of ['', ':', 'root:', 'Root', 'system:admin', 'root:tenant_a']) t.is(parseAnyPath(text), undefined, text);
});

test('the types of path entries have the group paths.strata, which Kubernetes does not have', (t) => {
  for (const { group } of [clusterEntries, workspaceEntries]) t.is(group, 'paths.strata');
});
