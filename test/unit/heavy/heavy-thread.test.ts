/**
 * The thread for heavy work. A task gives the same result there as on the main thread, and a task
 * that takes too much time or memory is refused.
 */
import type { ExecutionContext } from 'ava';
import { test } from '../../support/test.js';
import type { Worker } from 'node:worker_threads';
import { systemClock } from '../../../src/clock.js';
import { Refused, type Reason } from '../../../src/domain/errors.js';
import type { PatchTask } from '../../../src/domain/heavy-task.js';
import { HeavyThread, type HeavyLimits } from '../../../src/heavy/heavy-thread.js';

const mebibyte = 1024 * 1024;
const limits: HeavyLimits = {
  lightBytesMax: 1024,
  itemsMax: 8,
  bytesMax: 64 * mebibyte,
  taskTimeMaxMs: 20_000,
  threadMemoryMaxMiB: 512,
  idleMs: 1_000,
};

function aThread(t: ExecutionContext, changed: Partial<HeavyLimits> = {}, warn: (event: string) => void = () => {}): HeavyThread {
  const thread = new HeavyThread({ clock: systemClock, log: { warn } }, { ...limits, ...changed });
  t.teardown(() => thread.close());
  return thread;
}

function aPatch(target: string, patch: string, kind: 'json' | 'merge' = 'merge'): PatchTask {
  return { kind: 'patch', target: Buffer.from(target), patch: Buffer.from(patch), language: { kind }, bytesMax: 3 * mebibyte };
}

async function text(result: Promise<Uint8Array>): Promise<string> {
  return Buffer.from(await result).toString();
}

async function reasonOf(result: Promise<unknown>): Promise<Reason | 'done'> {
  try {
    await result;
    return 'done';
  } catch (error) {
    if (error instanceof Refused) return error.refusal.reason;
    throw error;
  }
}

const long = `{"a":[${'1.0,'.repeat(2_000)}1],"b":"é"}`;

test('a task gives the same in the thread as on the main thread, and leaves its input unchanged', async (t) => {
  const [here, there] = [aThread(t, { lightBytesMax: mebibyte }).of('a'), aThread(t).of('a')];
  const task = aPatch(long, '{"b":null,"c":{"d":"\u{1f600}"}}');

  t.is(await text(there.run(task)), await text(here.run(task)));
  t.is(Buffer.from(task.target).toString(), long);

  const [left, right] = [Buffer.from(long), Buffer.from(long.replaceAll('1.0', '1e0'))];
  t.true(await there.run({ kind: 'compare', left, right }));
  t.false(await there.run({ kind: 'compare', left, right: Buffer.from(long.replace('1.0', '2')) }));
  const yaml = await there.run({ kind: 'yaml from json', text: left });
  t.is(await text(there.run({ kind: 'json from yaml', text: yaml, bytesMax: mebibyte })), long);
});

test('a task is refused for the same reason in the thread as on the main thread', async (t) => {
  const [here, there] = [aThread(t, { lightBytesMax: mebibyte }).of('a'), aThread(t).of('a')];

  for (const [patch, reason] of [
    ['[{"op":"remove","path":"/none"}]', 'Invalid'],
    ['{}', 'BadRequest'],
    ['[', 'BadRequest'],
    [JSON.stringify(Array.from({ length: 10_001 }, () => ({ op: 'remove', path: '/a/0' }))), 'RequestEntityTooLarge'],
  ] as const) {
    const task = aPatch(long, patch, 'json');
    t.is(await reasonOf(there.run(task)), reason);
    t.is(await reasonOf(here.run(task)), reason);
  }
  const result = there.run({ ...aPatch(long, '{"c":1}'), bytesMax: 100 });
  t.is(await reasonOf(result), 'RequestEntityTooLarge');
  t.is(await reasonOf(there.run({ kind: 'json from yaml', text: Buffer.from('a: ['), bytesMax: mebibyte })), 'BadRequest');
});

test('a task that takes too long is refused, and the next one is done', async (t) => {
  const thread = aThread(t, { taskTimeMaxMs: 400 }).of('a');
  // Each of the 40,000 entries of the patch is searched among 40,000 with the same key.
  const owners = `{"metadata":{"ownerReferences":[${'{"uid":"a"},'.repeat(40_000)}{"uid":"a"}]}}`;
  const language = { kind: 'strategic', group: 'rbac.authorization.k8s.io', resource: 'clusterroles' } as const;

  const slow = reasonOf(thread.run({ ...aPatch(owners, owners), language }));

  t.is(await slow, 'RequestEntityTooLarge');
  const again = async (): Promise<string> => reasonOf(thread.run(aPatch(long, '{"b":null}')));
  let outcome = await again();
  for (let tries = 0; tries < 20 && outcome !== 'done'; tries++) outcome = await again();
  t.is(outcome, 'done');
});

test('a task that takes too much memory is refused, and the next one is done', async (t) => {
  const thread = aThread(t, { threadMemoryMaxMiB: 32 }).of('a');

  t.is(await reasonOf(thread.run(aPatch(`{"a":[${'{},'.repeat(240_000)}{}]}`, '{"b":1}'))), 'RequestEntityTooLarge');
  t.is(await reasonOf(thread.run(aPatch(long, '{"b":null}'))), 'done');
});

test.serial('a thread that is lost between tasks is logged and replaced', async (t) => {
  const logged: string[] = [];
  const workers: Worker[] = [];
  const note = (worker: Worker): void => void workers.push(worker);
  process.on('worker', note);
  t.teardown(() => process.off('worker', note));
  const thread = aThread(t, {}, (event) => logged.push(event)).of('a');
  t.is(await reasonOf(thread.run(aPatch(long, '{"b":null}'))), 'done');

  workers[0]?.emit('error', new Error('out of memory'));

  t.deepEqual(logged, ['heavy.thread-failed']);
  t.is(await reasonOf(thread.run(aPatch(long, '{"b":null}'))), 'done');
});

test('a value with too many parts for memory is not patched, and counts as different', async (t) => {
  const thread = aThread(t).of('a');
  const many = `{"a":[${'1,'.repeat(500_000)}1]}`;
  const within = `{"a":[${'1,'.repeat(499_000)}1],"b":"${',[{'.repeat(1_000)}"}`;

  t.is(await reasonOf(thread.run(aPatch(many, '{"b":1}'))), 'RequestEntityTooLarge');
  t.is(await reasonOf(thread.run(aPatch('{}', many))), 'RequestEntityTooLarge');
  t.false(await thread.run({ kind: 'compare', left: Buffer.from(many), right: Buffer.from(` ${many}`) }));
  t.true(await thread.run({ kind: 'compare', left: Buffer.from(within), right: Buffer.from(` ${within}`) }));
});

test('beyond the room for waiting tasks, one caller is refused and another is not', async (t) => {
  const thread = aThread(t, { itemsMax: 4 });
  const task = aPatch(long, '{"b":null}');

  const outcomes = ['a', 'a', 'a', 'a', 'b'].map((owner) => reasonOf(thread.of(owner).run(task)));

  // One task runs and two wait: half of the room.
  t.deepEqual(await Promise.all(outcomes), ['done', 'done', 'done', 'TooManyRequests', 'done']);
});

test('callers take turns', async (t) => {
  const thread = aThread(t);
  const task = aPatch(long, '{"b":null}');
  const order: string[] = [];

  await Promise.all(
    ['a1', 'a2', 'a3', 'b1'].map(async (name) =>
      thread
        .of(name.charAt(0))
        .run(task)
        .then(() => order.push(name)),
    ),
  );

  t.deepEqual(order, ['a1', 'a2', 'b1', 'a3']);
});

test('light tasks run on the main thread, in the order of the calls, unless they may copy or are YAML', async (t) => {
  const thread = aThread(t, { itemsMax: 0 }).of('a');
  const small = '{"a":[1]}';

  t.is(await text(thread.run(aPatch(small, '{"b":2}'))), '{"a":[1],"b":2}');
  t.is(await text(thread.run(aPatch(small, '[{"op":"remove","path":"/a"}]', 'json'))), '{}');
  for (const patch of ['[{"op":"copy","from":"/a","path":"/b"}]', '[{"op":"\\u0063opy","from":"/a","path":"/b"}]'])
    t.is(await reasonOf(thread.run(aPatch(small, patch, 'json'))), 'TooManyRequests');
  t.is(await reasonOf(thread.run({ kind: 'json from yaml', text: Buffer.from('a: 1'), bytesMax: 100 })), 'TooManyRequests');
});

test('closing refuses waiting tasks, ends the running one, and does not keep the process alive', async (t) => {
  const thread = new HeavyThread({ clock: systemClock, log: { warn: () => {} } }, limits);
  const running = thread.of('a').run(aPatch(`{"a":[${'{},'.repeat(240_000)}{}]}`, '{"b":1}'));
  const settled = Promise.allSettled([running]);

  await thread.close();

  t.is((await settled).length, 1);
});
