/**
 * Look-ups at two servers of one etcd, while the pusher of a shard is connected to one of them and
 * lacks a type. Finds an absence that a server proves wrongly, or does not prove.
 */
import { test } from '../../support/test.js';
import { aReader, aRef } from '../../support/lookup/a-reader.js';
import { RawPusher, pushedExport, pushedObject, sliceOf } from '../../support/raw-pusher.js';
import type { Slice } from '../../../src/domain/slice.js';
import { StrataProcess } from '../../support/strata-process.js';
import { until } from '../../support/test-server.js';
import { members } from './with-members.js';

const exports = sliceOf('apiexports');
const schemas = sliceOf('apiresourceschemas');
const refs = { exports: aRef({ name: 'none' }), schemas: aRef({ resource: 'apiresourceschemas', version: 'v1alpha1', name: 'none' }) };

test('a server without the pusher of a shard proves absences of exactly the types that the pusher reports as whole', async (t) => {
  const etcd = await members(t);
  if (etcd === undefined) return;
  await using _ = etcd;
  const flags = ['--etcd-prefix=/cache', `--etcd-servers=${etcd.endpoints.join(',')}`];
  await using near = await StrataProcess.start({ flags });
  await using far = await StrataProcess.start({ authority: near.authority, flags });
  const readers = [near, far].map((server) => aReader(t, server, { bounds: { reportAgeMaxMs: 0 } }));
  /** Whether the absence of an object is proved: both types at `near`, then both at `far`. */
  const proved = async (): Promise<readonly boolean[]> => {
    const answers = await Promise.all(readers.flatMap((reader) => [reader.get(refs.exports), reader.get(refs.schemas)]));
    return answers.map((answer) => answer.kind === 'absent' && answer.whole);
  };
  const report = (whole: { exports: boolean; schemas: boolean }, withdrawn: readonly Slice[] = []): void => {
    const freshness = [
      { slice: exports, connected: true, synced: true, lagMs: 0, whole: whole.exports },
      { slice: schemas, connected: true, synced: true, lagMs: 0, whole: whole.schemas },
    ].filter(({ slice }) => !withdrawn.includes(slice));
    pusher.socket.send({ kind: 'status', freshness, withdrawn });
  };
  const becomes = async (each: readonly boolean[]): Promise<void> => until(async () => String(await proved()) === String(each), 10_000);
  const pusher = await RawPusher.open(near);
  const schema = pushedObject({
    apiVersion: 'apis.kcp.io/v1alpha1',
    kind: 'APIResourceSchema',
    metadata: { name: 'one', uid: 'uid-of-one' },
  });

  report({ exports: true, schemas: false });
  await pusher.sync(exports, [pushedExport('one')]);
  await pusher.sync(schemas, [schema], 'v1alpha1');
  await becomes([true, false, true, false]);
  report({ exports: true, schemas: true });
  await becomes([true, true, true, true]);
  report({ exports: false, schemas: true });
  await becomes([false, true, false, true]);
  report({ exports: false, schemas: false });
  await becomes([false, false, false, false]);
  report({ exports: true, schemas: true });
  await becomes([true, true, true, true]);
  report({ exports: true, schemas: true }, [schemas]);
  await becomes([true, false, true, false]);
  report({ exports: true, schemas: true });
  await becomes([true, true, true, true]);
  t.pass();
});
