import { setImmediate as turn } from 'node:timers/promises';
import type { ExecutionContext } from 'ava';
import { test } from '../../support/test.js';
import { BoundedLog } from '../../../src/diagnostics/bounded-log.js';
import { AbsentTypes } from '../../../src/kube/absent-types.js';
import type { Identities } from '../../../src/kube/identities.js';
import { KubeRefusal, type KubeClient } from '../../../src/kube/kube-client.js';
import { KubeReader, type ReaderParts } from '../../../src/kube/kube-reader.js';
import { ManualClock } from '../../support/store/manual-clock.js';
import { silent } from '../../support/test-store.js';

const collection = { cluster: '*', group: 'g', version: 'v1', resource: 'things', identityOf: undefined, labelSelector: '' };
const whole = { type: 'BOOKMARK', object: { metadata: { resourceVersion: '7', annotations: { 'k8s.io/initial-events-end': 'true' } } } };
const expired = { type: 'ERROR', object: { kind: 'Status', code: 410, reason: 'Expired', message: 'too old', metadata: {} } };

function partsOf(clock: ManualClock, { client, absent = new AbsentTypes() }: { client: KubeClient; absent?: AbsentTypes }): ReaderParts {
  const boundedLog = new BoundedLog({ clock, log: silent });
  return { client, identities: {} as Identities, absent, clock, random: () => 0.5, log: silent, boundedLog };
}

async function* expiring(): AsyncGenerator<Uint8Array, void> {
  for (const event of [whole, expired]) yield Buffer.from(`${JSON.stringify(event)}\n`);
}

test('a watch that expires after each of its syncs is opened at growing intervals', async (t) => {
  const clock = new ManualClock();
  let opened = 0;
  const open = (): Promise<AsyncGenerator<Uint8Array, void>> => {
    opened += 1;
    return Promise.resolve(expiring());
  };
  const parts = partsOf(clock, { client: { open } as unknown as KubeClient });
  const abort = new AbortController();
  const received: string[] = [];
  const reading = (async () => {
    for await (const reads of new KubeReader(parts, collection).read(abort.signal)) {
      received.push(...reads.map(({ kind }) => kind));
      if (opened > 100) break;
    }
  })();

  for (let step = 0; step < 600; step += 1) {
    for (let i = 0; i < 10; i += 1) await turn();
    clock.advance(100);
  }
  abort.abort();
  await reading;

  t.true(opened >= 5 && opened <= 8, `opened ${opened} times in a minute`);
  t.deepEqual(received.slice(0, 4), ['begin', 'end', 'begin', 'end']);
  t.is(clock.pending, 0);
});

test('a type that was absent, and whose requests fail for another reason afterwards, is retried as often as any other', async (t) => {
  const clock = new ManualClock();
  const absent = new AbsentTypes();
  for (let i = 0; i < 500; i += 1) absent.add({});
  let opened = 0;
  const open = (): Promise<never> => {
    opened += 1;
    return Promise.reject(
      opened <= 2 ? new KubeRefusal(404, 'NotFound', 'not served') : new KubeRefusal(503, 'ServiceUnavailable', 'away'),
    );
  };
  const parts = partsOf(clock, { client: { open } as unknown as KubeClient, absent });
  const abort = new AbortController();
  const reading = (async () => {
    for await (const _ of new KubeReader(parts, collection).read(abort.signal));
  })();

  for (let step = 0; step < 600; step += 1) {
    for (let i = 0; i < 10; i += 1) await turn();
    clock.advance(1_000);
  }
  abort.abort();
  await reading;

  // At most half a minute between two attempts.
  t.true(opened >= 20 && opened <= 50, `opened ${opened} times in ten minutes`);
});

type Asked = Readonly<{ path: string }>;

/**
 * The reads of a reader and its requests. The shard gives these answers in turn; after the last one
 * the reader is aborted.
 */
async function readOf(
  t: ExecutionContext,
  answers: readonly (KubeRefusal | readonly object[])[],
): Promise<{ kinds: string[]; asked: string[] }> {
  const clock = new ManualClock();
  const abort = new AbortController();
  const asked: string[] = [];
  async function* texts(all: readonly object[]): AsyncGenerator<Uint8Array, void> {
    for (const each of all) yield Buffer.from(`${JSON.stringify(each)}\n`);
  }
  const open = ({ path }: Asked): Promise<AsyncGenerator<Uint8Array, void>> => {
    const answer = answers[asked.length];
    asked.push(path);
    if (answer === undefined) abort.abort();
    return answer instanceof KubeRefusal ? Promise.reject(answer) : Promise.resolve(texts(answer ?? []));
  };
  const kinds: string[] = [];
  const reading = (async () => {
    const reader = new KubeReader(partsOf(clock, { client: { open } as unknown as KubeClient }), collection);
    for await (const reads of reader.read(abort.signal)) kinds.push(...reads.map(({ kind }) => kind));
  })();
  t.teardown(() => abort.abort());
  for (let step = 0; step < 100 && !abort.signal.aborted; step += 1) {
    for (let i = 0; i < 10; i += 1) await turn();
    clock.advance(1_000);
  }
  await reading;
  return { kinds, asked };
}

const noWatchList = new KubeRefusal(400, 'BadRequest', 'no initial events');
const list = { kind: 'ThingList', apiVersion: 'g/v1', metadata: { resourceVersion: '9' }, items: [] };

for (const [what, answer] of [
  ['a Status', { kind: 'Status', apiVersion: 'v1', status: 'Failure', code: 500, metadata: { resourceVersion: '9' }, items: [] }],
  ['a Table', { ...list, kind: 'Table', apiVersion: 'meta.k8s.io/v1' }],
  ['a list of another group', { ...list, apiVersion: 'other/v1' }],
  ['a list of another version', { ...list, apiVersion: 'g/v2' }],
  ['an object', { kind: 'Thing', apiVersion: 'g/v1', metadata: { name: 'a', resourceVersion: '9' } }],
  ['a list that says no version', { ...list, apiVersion: undefined }],
] as const)
  test(`${what} in place of a list is no empty list: no earlier object counts as removed`, async (t) => {
    const { kinds, asked } = await readOf(t, [noWatchList, [answer], [list]]);

    t.deepEqual(kinds, ['begin', 'begin', 'end']);
    t.true(asked.length >= 3);
  });

for (const [what, event] of [
  ['an object', { type: 'MODIFIED', object: { metadata: { name: 'a' } } }],
  ['a bookmark', { type: 'BOOKMARK', object: { metadata: {} } }],
  ['a removal', { type: 'DELETED', object: { metadata: { name: 'a', resourceVersion: '' } } }],
  ['a number of', { type: 'ADDED', object: { metadata: { name: 'a', resourceVersion: 8 } } }],
] as const)
  test(`${what} without a resourceVersion ends a watch, and the next one resumes at the last version`, async (t) => {
    const { kinds, asked } = await readOf(t, [[whole, event]]);

    t.deepEqual(kinds, ['begin', 'end']);
    t.is(new URL(asked[1] ?? '', 'https://shard').searchParams.get('resourceVersion'), '7');
  });

test('a bookmark without a resourceVersion does not end a sync', async (t) => {
  const nameless = { type: 'BOOKMARK', object: { metadata: { annotations: { 'k8s.io/initial-events-end': 'true' } } } };

  const { kinds, asked } = await readOf(t, [[nameless], [list]]);

  t.deepEqual(kinds, ['begin', 'begin', 'end']);
  t.false((asked[1] ?? '').includes('watch=true'));
});
