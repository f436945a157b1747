import { setImmediate as turn } from 'node:timers/promises';
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

test('a watch that expires after each of its syncs is opened ever more seldom', async (t) => {
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

test('a type that was absent, and whose reading fails otherwise now, is asked for as often as any other', async (t) => {
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

  // Half a minute at most between two.
  t.true(opened >= 20 && opened <= 50, `opened ${opened} times in ten minutes`);
});
