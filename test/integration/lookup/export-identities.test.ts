/**
 * Identity hashes over the wire: shards push exports over websockets, and a program and the command
 * line ask a real cache.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { test } from '../../support/test.js';
import { exportIdentities } from '../../../src/client.js';
import { identities } from '../../../src/commands/identities.js';
import { CacheError } from '../../../src/domain/errors.js';
import { called } from '../../support/commands/called.js';
import { RawPusher, pushedExport, sliceOf } from '../../support/raw-pusher.js';
import { aServer, type TestServer } from '../../support/test-server.js';
import { aReader, exportAt } from '../../support/lookup/a-reader.js';

const exports = sliceOf('apiexports');

async function rooted(server: TestServer): Promise<RawPusher> {
  const pusher = await RawPusher.open(server);
  await pusher.syncWhole(exports, [
    pushedExport('tenancy.kcp.io', { cluster: 'root', status: { identityHash: 'abc123' } }),
    pushedExport('shards.core.kcp.io', { cluster: 'root', status: { identityHash: 'def456' } }),
    pushedExport('new.example.io', { cluster: 'root' }),
    exportAt('root:org'),
  ]);
  return pusher;
}

async function flagsFor(t: ExecutionContext, server: TestServer): Promise<Readonly<Record<string, string>>> {
  const folder = await mkdtemp(join(tmpdir(), 'strata-identities-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const file = async (name: string, text: string): Promise<string> => {
    await writeFile(join(folder, name), text);
    return join(folder, name);
  };
  return {
    cache: server.url,
    'ca-file': await file('ca.crt', server.certificate),
    'cert-file': await file('master.crt', server.master.certificate),
    'key-file': await file('master.key', server.master.key),
  };
}

test('identities carry the shard and its freshness, ordered by the names of the exports', async (t) => {
  const server = await aServer(t);
  const pusher = await rooted(server);
  const reader = aReader(t, server, { bounds: { reportAgeMaxMs: 0 } });

  const found = await exportIdentities(reader);
  t.like(found, { kind: 'listed', whole: true });
  if (found.kind !== 'listed') return;
  t.deepEqual(
    found.identities.map(({ export: name, shard, identity, freshness }) => [name, shard, identity, freshness?.whole]),
    [
      ['new.example.io', 'amber', '', true],
      ['shards.core.kcp.io', 'amber', 'def456', true],
      ['tenancy.kcp.io', 'amber', 'abc123', true],
    ],
  );

  // The pusher leaves; its exports stay, and their freshness shows that it is disconnected.
  pusher.socket.terminate();
  await t.notThrowsAsync(async () => {
    for (;;) {
      const later = await exportIdentities(reader);
      if (later.kind !== 'listed' || later.identities.length !== 3) throw new Error('they are gone');
      if (!later.whole && later.identities.every(({ freshness }) => freshness?.connected === false)) return;
    }
  });
});

test('the exports of a workspace are found by its path; an identity that no export has is absent', async (t) => {
  const server = await aServer(t);
  await rooted(server);
  const reader = aReader(t, server);
  t.like(await exportIdentities(reader, 'root:org'), { kind: 'listed', identities: [{ export: 'one', identity: '' }] });
  t.like(await exportIdentities(reader, 'root:none'), { kind: 'absent', missing: 'path' });
  t.like(await exportIdentities(reader, 'nobody'), { kind: 'listed', identities: [] });
});

test('the command prints identities for people and for programs', async (t) => {
  const server = await aServer(t);
  await rooted(server);
  const flags = await flagsFor(t, server);
  const table = await called(identities, { flags });
  t.regex(table, /^EXPORT +IDENTITY +SHARD +EXPORTS OF THE SHARD\n/);
  t.regex(table, /^tenancy\.kcp\.io +abc123 +amber +current, \d+ ms behind$/m);
  t.regex(table, /^new\.example\.io +– +amber +current, \d+ ms behind$/m);
  t.notRegex(table, /strata status/);

  const printed = JSON.parse(await called(identities, { flags: { ...flags, output: 'json' } })) as { identities: { identity: string }[] };
  t.deepEqual(
    printed.identities.map(({ identity }) => identity),
    ['', 'def456', 'abc123'],
  );
  t.is(await called(identities, { operands: ['nobody'], flags }), 'nobody has no APIExport here.\n');
  await t.throwsAsync(called(identities, { operands: ['root:none'], flags }), { instanceOf: CacheError, message: /root:none/ });
  await t.throwsAsync(called(identities, { operands: ['Not a workspace'], flags }), { message: /neither/ });
});
