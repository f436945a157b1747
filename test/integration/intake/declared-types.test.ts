import { test } from '../../support/test.js';
import { Catalogue } from '../../../src/domain/catalogue/catalogue.js';
import { kcpTypes } from '../../../src/domain/catalogue/catalogue-kcp.js';
import type { Change, Commit } from '../../../src/domain/change.js';
import { deferred, type Deferred } from '../../../src/domain/base/promises.js';
import type { StoredObject } from '../../../src/domain/object.js';
import type { Objects } from '../../../src/domain/store-port.js';
import type { Push, PushOutcome } from '../../../src/domain/push.js';
import type { Resource } from '../../../src/domain/resource.js';
import type { Scope } from '../../../src/domain/scope.js';
import { DeclaredTypes } from '../../../src/intake/shards/declared-types.js';
import { ManualClock } from '../../support/store/manual-clock.js';
import { aBody, aClusterCachedResource, aKey } from '../../support/objects.js';
import { silent } from '../../support/test-store.js';
import { FakePushes } from '../../support/intake/fake-pushes.js';

const swept: PushOutcome = { kind: 'swept', removed: 2 };
const nothingSwept: PushOutcome = { kind: 'swept', removed: 0 };
const unavailable: PushOutcome = {
  kind: 'unavailable',
  refusal: { reason: 'ServiceUnavailable', message: 'the store cannot write (ENOSPC)' },
};
/** Longer than the wait before a retry. */
const longMs = 3_600_000;

function instances(identity = 'hash'): Resource {
  return { group: 'machines.svm.io', resource: 'instances', identity };
}

function drop(identity?: string, through = 0): Push {
  return { kind: 'drop', resource: instances(identity), through };
}

function aDeclaration(identity: string, revision = 1, kind = 'Instance'): StoredObject {
  const key = aKey({ group: 'cache.kcp.io', resource: 'clustercachedresources', name: identity });
  const bytes = new TextEncoder().encode(JSON.stringify(aClusterCachedResource(identity, { kind })));
  return { key, revision, resourceVersion: String(revision), body: { ...aBody(key), bytes } };
}

/** Lets the test answer the drops one by one. */
class HeldPushes extends FakePushes {
  readonly #held: Deferred<PushOutcome>[] = [];

  override lane() {
    const { drained } = super.lane();
    return {
      drained,
      push: async (pushes: readonly Push[]) => {
        this.pushed.push(...pushes);
        const held = pushes.map(() => deferred<PushOutcome>());
        this.#held.push(...held);
        return Promise.all(held.map(({ promise }) => promise));
      },
    };
  }

  async answer(outcome: PushOutcome): Promise<void> {
    this.#held.shift()?.resolve(outcome);
    await settled();
  }
}

/** Lets all pending work run that waits for nothing but promises. */
async function settled(): Promise<void> {
  for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
}

/** `duringPage`: commits while the start waits for its only page of declarations. */
async function setUp(
  held: readonly Resource[] = [],
  {
    published = 0,
    page = [],
    duringPage = () => {},
  }: { published?: number; page?: readonly StoredObject[]; duringPage?: (publish: (change: Change) => void) => void } = {},
) {
  const clock = new ManualClock();
  const pushes = new HeldPushes();
  const catalogue = new Catalogue(kcpTypes);
  const ended: Resource[] = [];
  const logged: string[] = [];
  const asked = { count: 0 };
  const note = (event: string): void => void logged.push(event);
  const listeners = new Set<(commit: Commit) => void>();
  /** Identities that still have objects. */
  const left = new Set<string>();
  const objects = {
    count: async ({ identity }: Scope) => (left.has(identity) ? undefined : 0),
    snapshot: () => ({
      revision: 0,
      page: async () => {
        duringPage((change) =>
          listeners.forEach((listener) => listener({ revision: 1, changes: [change], movedPaths: [], swept: new Set() })),
        );
        return { objects: page, next: undefined };
      },
      close: () => {},
    }),
  } as unknown as Objects;
  const types = await DeclaredTypes.open(
    {
      catalogue,
      objects,
      revisions: {
        published,
        compacted: 0,
        format: String,
        locate: () => ({ kind: 'above' }),
        formatPosition: String,
        locatePosition: () => ({ kind: 'above' }),
        reachNewest: async () => {},
      },
      writer: pushes,
      commits: { subscribe: (listener) => (listeners.add(listener), { cancel: () => void listeners.delete(listener) }) },
      watches: { endOf: (resource) => void ended.push(resource) },
      sessions: { drop: () => {}, declared: () => void (asked.count += 1) },
      clock,
      log: { ...silent, info: note, warn: note, error: note },
    },
    held,
  );
  await settled();
  let revision = 0;
  const publish = async (change: Change): Promise<void> => {
    for (const listener of listeners) listener({ revision, changes: [change], movedPaths: [], swept: new Set() });
    await settled();
  };
  const declare = (identity = 'hash', kind = 'Instance'): Promise<void> => {
    revision += 1;
    const object = aDeclaration(identity, revision, kind);
    return publish({ kind: 'put', key: object.key, revision, object, created: true, previous: () => undefined });
  };
  const withdraw = (identity = 'hash'): Promise<void> => {
    revision += 1;
    return publish({
      kind: 'delete',
      key: aDeclaration(identity).key,
      revision,
      resourceVersion: String(revision),
      previous: () => undefined,
    });
  };
  const put = ({ identity }: Resource): Promise<void> => {
    revision += 1;
    const key = aKey({ ...instances(identity), name: `of ${identity}` });
    const object = { key, revision, resourceVersion: String(revision), body: aBody(key) };
    return publish({ kind: 'put', key, revision, object, created: true, previous: () => undefined });
  };
  return { clock, catalogue, pushes, left, types, ended, logged, asked, declare, withdraw, put };
}

test('a drop names the revision up to which nothing declared its type', async (t) => {
  const { pushes } = await setUp([instances()], { published: 12 });

  t.deepEqual(pushes.pushed, [drop('hash', 12)]);
});

test('a type that nothing declares any more is dropped by one push, and its watches end afterwards', async (t) => {
  const { pushes, ended, logged, declare, withdraw } = await setUp();
  await declare();
  t.deepEqual(pushes.pushed, []);

  await withdraw();

  t.deepEqual(pushes.pushed, [drop()]);
  t.deepEqual(ended, []);
  await pushes.answer(swept);
  t.deepEqual(ended, [instances()]);
  t.deepEqual(logged, ['type.removed']);
});

test('watches end once no object of the type is left, even if another server removes the last; other types do not wait', async (t) => {
  const { clock, pushes, left, ended, logged, declare, withdraw } = await setUp();
  for (const identity of ['first', 'second']) await declare(identity);
  for (const identity of ['first', 'second']) await withdraw(identity);
  left.add('first');

  await pushes.answer(nothingSwept);
  t.deepEqual(pushes.pushed, [drop('first')]);
  clock.advance(longMs);
  await settled();
  t.deepEqual(pushes.pushed, [drop('first'), drop('second')]);
  await pushes.answer(swept);
  t.deepEqual(ended, [instances('second')]);
  t.deepEqual(pushes.pushed, [drop('first'), drop('second'), drop('first')]);
  left.clear();
  await pushes.answer(nothingSwept);

  t.deepEqual(ended, [instances('second'), instances('first')]);
  t.deepEqual(logged, ['type.removed', 'type.removed']);
});

test('however often a type that still has objects is written to, only one drop of it waits; a stop ends the wait', async (t) => {
  const { clock, pushes, left, types, ended, declare, withdraw, put } = await setUp();
  await declare();
  await withdraw();
  left.add('hash');
  for (let round = 0; round < 3; round += 1) {
    await put(instances());
    await pushes.answer(nothingSwept);
    clock.advance(longMs);
    await settled();
  }
  t.deepEqual(pushes.pushed, [drop(), drop(), drop(), drop()]);

  await pushes.answer(nothingSwept);
  await types.close();

  t.deepEqual([pushes.pushed.length, ended, clock.pending], [4, [], 0]);
});

test('a type whose objects are not all removed ends its watches when it comes back as another kind', async (t) => {
  const { clock, pushes, left, ended, declare, withdraw, put } = await setUp();
  await declare();
  await withdraw();
  left.add('hash');
  await put(instances());
  await pushes.answer(nothingSwept);
  await declare('hash', 'Machine');

  clock.advance(longMs);
  await settled();

  t.deepEqual(pushes.pushed, [drop()]);
  t.deepEqual(ended, [instances()]);
});

test('a type that is declared again while it is dropped keeps its watches, and is not dropped again', async (t) => {
  const { clock, pushes, ended, declare, withdraw } = await setUp();
  await declare();
  await withdraw();

  await declare();
  await pushes.answer(swept);
  clock.advance(longMs);
  await settled();

  t.deepEqual(pushes.pushed, [drop()]);
  t.deepEqual(ended, []);
});

test('a type that is declared again before its drop starts is not dropped: its acknowledged objects stay', async (t) => {
  const { pushes, ended, declare, withdraw } = await setUp();
  for (const identity of ['first', 'second']) await declare(identity);
  for (const identity of ['first', 'second']) await withdraw(identity);

  await declare('second');
  await pushes.answer(swept);

  t.deepEqual(pushes.pushed, [drop('first')]);
  t.deepEqual(ended, [instances('first')]);
});

test('a type that ends again while it is dropped is dropped again, however often it was declared and withdrawn', async (t) => {
  const { pushes, ended, declare, withdraw } = await setUp();
  await declare();
  await withdraw();
  for (let time = 0; time < 5; time += 1) {
    await declare();
    await withdraw();
  }

  await pushes.answer(swept);
  await pushes.answer(swept);

  t.deepEqual(pushes.pushed, [drop(), drop()]);
  t.deepEqual(ended.at(-1), instances());
});

test('an object that was admitted before its type ended, and stored after the drop, is dropped as well', async (t) => {
  const { pushes, declare, withdraw, put } = await setUp();
  await declare();
  await put(instances());
  t.deepEqual(pushes.pushed, []);

  await withdraw();
  await put(instances());
  await put(instances());
  await pushes.answer(swept);
  t.deepEqual(pushes.pushed, [drop(), drop()]);
  await pushes.answer(swept);
  await put(instances());

  t.deepEqual(pushes.pushed, [drop(), drop(), drop()]);
});

test('a refused drop is tried again later, unless the type is declared again', async (t) => {
  const { clock, pushes, ended, logged, declare, withdraw } = await setUp();
  await declare();
  await withdraw();

  await pushes.answer(unavailable);
  t.deepEqual([pushes.pushed.length, ended.length], [1, 0]);
  clock.advance(longMs);
  await settled();
  t.deepEqual(pushes.pushed, [drop(), drop()]);
  await pushes.answer(unavailable);
  await declare();
  clock.advance(longMs);
  await settled();

  t.is(pushes.pushed.length, 2);
  t.deepEqual(ended, []);
  t.deepEqual(logged, ['type.removal-delayed', 'type.removal-delayed']);
});

test('at the start, objects of undeclared types that a dead server left are dropped, and nothing else', async (t) => {
  const builtIn = { group: 'apis.kcp.io', resource: 'apiexports', identity: '' };

  const { pushes } = await setUp([builtIn, instances('left')]);

  t.deepEqual(pushes.pushed, [drop('left')]);
});

test('a commit during the start overrides the older declarations that the start reads', async (t) => {
  const [gone, changed, kept] = ['gone', 'changed', 'kept'].map((name) => aDeclaration(name));
  const { catalogue } = await setUp([], {
    page: [gone!, changed!, kept!],
    duringPage: (publish) => {
      publish({ kind: 'delete', key: gone!.key, revision: 1, resourceVersion: '1', previous: () => undefined });
      const object = { ...aDeclaration('new'), key: changed!.key };
      publish({ kind: 'put', key: changed!.key, revision: 1, object, created: false, previous: () => undefined });
    },
  });

  const served = ['gone', 'changed', 'kept', 'new'].filter((identity) => catalogue.declares(instances(identity)));
  t.deepEqual(served, ['kept', 'new']);
});

test('a start does not drop a type that an unread page still declares, whatever is committed before it reads the page', async (t) => {
  const [first, second, gone] = ['first', 'second', 'gone'].map((name) => aDeclaration(name));
  const object = (identity: string): Change => {
    const key = aKey({ ...instances(identity), name: `of ${identity}` });
    return {
      kind: 'put',
      key,
      revision: 1,
      object: { key, revision: 1, resourceVersion: '1', body: aBody(key) },
      created: true,
      previous: () => undefined,
    };
  };
  const another = aKey({ group: 'cache.kcp.io', resource: 'clustercachedresources', name: 'another' });
  const { pushes } = await setUp([], {
    page: [first!, second!, gone!],
    duringPage: (publish) => {
      for (const identity of ['first', 'gone', 'unknown']) publish(object(identity));
      // One of two declarations of a type is deleted, and so is the only one of another type.
      const twice = { ...aDeclaration('second'), key: another };
      publish({ kind: 'put', key: another, revision: 1, object: twice, created: true, previous: () => undefined });
      publish({ kind: 'delete', key: another, revision: 1, resourceVersion: '1', previous: () => undefined });
      publish({ kind: 'delete', key: gone!.key, revision: 1, resourceVersion: '1', previous: () => undefined });
    },
  });
  for (let i = 0; i < 2; i += 1) await pushes.answer(swept);

  t.deepEqual(pushes.pushed, [drop('gone'), drop('unknown')]);
});

test('closing waits for a drop in progress, and starts none afterwards', async (t) => {
  const { clock, pushes, types, ended, logged, declare, withdraw } = await setUp();
  for (const identity of ['first', 'second']) await declare(identity);
  for (const identity of ['first', 'second']) await withdraw(identity);
  let closed = false;

  const closing = types.close().then(() => (closed = true));
  await settled();
  t.false(closed);
  await pushes.answer(unavailable);
  await closing;

  t.deepEqual(pushes.pushed, [drop('first')]);
  t.deepEqual([ended, logged, clock.pending], [[], [], 0]);
});

test('closing ends the wait for a full disk', async (t) => {
  const { clock, pushes, types, declare, withdraw } = await setUp();
  await declare();
  await withdraw();
  await pushes.answer(unavailable);
  t.is(clock.pending, 1);

  await types.close();

  t.is(clock.pending, 0);
  t.is(pushes.pushed.length, 1);
});

test('sessions ask for waiting objects when a type is declared, and when the end of one type makes room for another', async (t) => {
  const { asked, declare, withdraw, put } = await setUp();
  await declare('a');
  t.is(asked.count, 1);
  await put(instances('a'));
  t.is(asked.count, 1);
  await withdraw('a');
  t.is(asked.count, 2);
});
