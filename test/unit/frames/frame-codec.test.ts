import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';
import { rounds } from '../../support/sizes.js';
import { test } from '../../support/test.js';
import fc from 'fast-check';
import { BadFrame } from '../../../src/frames/bad-frame.js';
import { frames, type Frame } from '../../../src/frames/frame.js';
import { pack, readFrame, unpack, writeFrame } from '../../../src/frames/frame-codec.js';
import { fastestMs } from '../../support/fastest.js';
import { anyFrame, aPut, exportsOfAmber, plain, someFrames } from '../../support/frames/some-frames.js';
import { collectGarbage } from '../../support/collect-garbage.js';

const amber = ['amber', 'apis.kcp.io', 'apiexports', ''];
/** Including the member for the frame's number. */
const membersOfEnd = 8;

/**
 * The number of members that a reader may miss in this frame, because later versions added them.
 */
function addedTo(frame: Frame): number {
  const positions = 'position' in frame && frame.position !== undefined ? 1 : 0;
  if (frame.kind === 'begin') return frame.compares === true ? 1 : 0;
  if (frame.kind === 'end') return frame.term !== undefined ? 2 : frame.buckets !== undefined ? 1 : 0;
  const mayName = frame.kind === 'hello' || frame.kind === 'put' || frame.kind === 'delete' || frame.kind === 'ack';
  return mayName ? positions : 0;
}

/** The members of a frame as a reader of the latest version sees them. */
function allMembers(frame: Frame): readonly unknown[] {
  const members = unpack(writeFrame(frame)) as unknown[];
  if (frame.kind === 'end') return [...members, ...Array<null>(membersOfEnd - members.length).fill(null)];
  const mayLack: readonly Frame['kind'][] = ['hello', 'put', 'delete', 'ack', 'begin'];
  const isFlagged = frame.kind === 'begin' && frame.compares === true;
  const isLacking = mayLack.includes(frame.kind) && !isFlagged && !('position' in frame && frame.position !== undefined);
  return isLacking ? [...members, null] : members;
}

test('every frame that is written is read as it was', (t) => {
  fc.assert(
    fc.property(anyFrame, (frame) => {
      t.deepEqual(plain(readFrame(writeFrame(frame))), plain(frame));
    }),
    { numRuns: rounds(500) },
  );
  t.deepEqual(
    someFrames.map((frame) => plain(readFrame(writeFrame(frame)))),
    someFrames.map(plain),
  );
});

test('there is an example of every kind of frame', (t) => {
  t.deepEqual(new Set(someFrames.map(({ kind }) => kind)), new Set(Object.keys(frames) as Frame['kind'][]));
});

test('names that are special in JavaScript pass unchanged and have no effect', (t) => {
  const before = Object.getOwnPropertyNames(Object.prototype);
  const names = ['__proto__', 'constructor', 'prototype', 'hasOwnProperty', 'toJSON'];
  const keys = names.map((name) => ({ cluster: name, namespace: name, name }));

  const frame = readFrame(writeFrame({ kind: 'delete', sequence: 1, slice: exportsOfAmber, keys }));

  t.deepEqual(frame.kind === 'delete' && frame.keys, keys);
  t.deepEqual(Object.getOwnPropertyNames(Object.prototype), before);
});

test('a body is a view of its message, without a copy', (t) => {
  const bytes = writeFrame(aPut());

  const frame = readFrame(bytes);

  t.is(frame.kind === 'put' ? frame.objects[0]?.body?.buffer : undefined, bytes.buffer);
});

test('members after the known ones belong to a later protocol and are ignored', (t) => {
  for (const frame of someFrames) {
    t.deepEqual(plain(readFrame(pack([...allMembers(frame), 'more', [1, Buffer.from('x')]]))), plain(frame));
  }
});

test('a frame is refused if any of its members is missing', (t) => {
  for (const frame of someFrames) {
    const members = unpack(writeFrame(frame)) as unknown[];
    for (let length = 0; length < members.length - addedTo(frame); length += 1)
      t.throws(() => readFrame(pack(members.slice(0, length))), { instanceOf: BadFrame }, `${frame.kind} with ${length} members`);
  }
});

test('a frame is refused if any of its members has another type', (t) => {
  for (const frame of someFrames) {
    const members = unpack(writeFrame(frame)) as unknown[];
    for (const at of members.keys()) {
      const wrong = typeof members[at] === 'string' ? 1 : 'text';
      t.throws(() => readFrame(pack(members.with(at, wrong))), { instanceOf: BadFrame }, `${frame.kind}, member ${at}`);
    }
  }
});

const bad: readonly [string, unknown, string][] = [
  ['no list', 'hello', 'the frame is not a list'],
  ['an empty list', [], 'the frame has an unknown kind'],
  ['a kind of number 0', [0], 'the frame has an unknown kind'],
  ['a kind that is not known', [99], 'the frame has an unknown kind'],
  ['a kind by name', ['put'], 'the frame has an unknown kind'],
  ['a put of nothing', [3, 1, amber, 'v1', []], 'put.objects is not a list of records with 5 members each'],
  [
    'a put whose objects are no multiple of five',
    [3, 1, amber, 'v1', ['c', '', 'n', '1']],
    'put.objects is not a list of records with 5 members each',
  ],
  ['a put of too much', [3, 1, amber, 'v1', Array(50_005).fill('')], 'put.objects has more than 10000 records'],
  ['a body that is text', [3, 1, amber, 'v1', ['c', '', 'n', '1', '{}']], 'put.objects.body is not a byte string'],
  ['a key that is a number', [3, 1, amber, 'v1', ['c', '', 7, '1', null]], 'put.objects has a part of a key that is not a string'],
  ['a delete of nothing', [4, 1, amber, []], 'delete.keys is not a list of records with 3 members each'],
  ['keys that are no multiple of three', [4, 1, amber, ['c', '']], 'delete.keys is not a list of records with 3 members each'],
  ['a sequence of 0', [5, 0, amber, '1'], 'begin.sequence is not a number above 0'],
  ['a slice without a shard', [5, 1, ['', 'g', 'r', ''], '1'], 'begin.slice.shard is not valid'],
  ['a slice of all shards', [5, 1, ['*', 'g', 'r', ''], '1'], 'begin.slice.shard is not valid'],
  ['a slice of a shard with a slash', [5, 1, ['a/b', 'g', 'r', ''], '1'], 'begin.slice.shard is not valid'],
  ['a slice without a plural', [5, 1, ['amber', 'g', '', ''], '1'], 'begin.slice.resource is not valid'],
  ['a plural with a colon', [5, 1, ['amber', 'g', 'r:x', ''], '1'], 'begin.slice.resource is not valid'],
  ['a plural with a line behind', [5, 1, ['amber', 'g', 'r\n', ''], '1'], 'begin.slice.resource is not valid'],
  ['a group with a slash', [5, 1, ['amber', '../g', 'r', ''], '1'], 'begin.slice.group is not valid'],
  ['a group beyond 253 characters', [5, 1, ['amber', 'g'.repeat(254), 'r', ''], '1'], 'begin.slice.group is not valid'],
  ['an identity of another alphabet', [5, 1, ['amber', 'g', 'r', 'ä'], '1'], 'begin.slice.identity is not valid'],
  ['a revision of more than 1,024 characters', [5, 1, amber, '1'.repeat(1025)], 'begin.revision is longer than 1024 characters'],
  ['a reason of more than 4,096 characters', [7, amber, 'x'.repeat(4097)], 'resync.reason is longer than 4096 characters'],
  ['a progress without a number', [8, '42'], 'progress.sequence is not a number above 0'],
  ['a position that is none', [8, 1, 42], 'progress.position is not a string'],
  ['a flag that is a number', [9, 'amber', 1, 'p', 1], 'claim.removed is neither true nor false'],
  ['a term of 0', [9, 'amber', 0, '', true], 'claim.term is not a number above 0'],
  ['a claim without a process', [9, 'amber', 1, true], 'claim.process is not a string'],
  [
    'a claim by more than 64 caches',
    [9, 'amber', 1, 'p', false, 'c', Array(65).fill('c'), true, false],
    'claim.path has more than 64 members',
  ],
  ['a claim that does not say whose it is', [9, 'amber', 1, 'p', false, 'c', [], true], 'claim.isYours is neither true nor false'],
  ['a credit that is a number', [13, 1, 7], 'ack.credit is not a list'],
  ['a credit of more than 10,000 members', [13, 1, [1, 1, ...Array<number>(9_999).fill(1)]], 'ack.credit has more than 10000 members'],
  [
    'a slice of more than 10,000 members',
    [5, 1, [...amber, ...Array<number>(9_997).fill(1)], '1'],
    'begin.slice has more than 10000 members',
  ],
  ['limits of 0', [2, 1, 'c', 1, 0, [1, 1], [0, 1, 1]], 'welcome.limits.frameBytesMax is not a number above 0'],
  ['a role that is none', [1, 1, 'constructor', 'a', 'p', 1, false, [], '', null, null], 'hello.role is not valid'],
  ['a reason for a bye that is none', [16, 'constructor', '', null], 'bye.reason is not valid'],
  ['a bye that says when with a flag', [16, 'shutdown', '', false], 'bye.retryAfterMs is not a number'],
  ['rules up beyond 256 KiB', [11, 'x'.repeat(256 * 1024 + 1), ''], 'policy.up is longer than 65536 characters'],
  ['rules down beyond 256 KiB', [11, '', 'x'.repeat(256 * 1024 + 1)], 'policy.down is longer than 65536 characters'],
  ['a digest without a number', [12, amber, 'd'], 'digest.sequence is not a number above 0'],
  ['more held slices than a frame may name', [17, '', Array(1_001).fill(0), true], 'resume.held has more than 1000 members'],
  [
    'a filter hash of more than 64 characters',
    [17, '', [[amber, 'x'.repeat(65), 0]], true],
    'resume.held.filterHash is longer than 64 characters',
  ],
  ['a route of more than 64 caches', [10, Array(65).fill('c')], 'route.route has more than 64 members'],
  ['a route by an id of more than 64 characters', [10, ['c'.repeat(65)]], 'route.route is longer than 64 characters'],
  ['an end of something that is no set of buckets', [6, 1, amber, '1', 0, 'e', 'ff', 7], 'end.buckets is not valid'],
  ['an end for a claim of 0', [6, 1, amber, '1', 0, 'e', null, 0], 'end.term is not a number above 0'],
  ['more types than a frame may name', [22, Array(1_001).fill(amber), [], true], 'types.slices has more than 1000 members'],
  [
    'more slices that are gone than a frame may name',
    [22, [], Array(1_001).fill(amber), true],
    'types.withdrawn has more than 1000 members',
  ],
  [
    'more freshness than a frame may report',
    [15, Array(1_001).fill([amber, true, true, 0, true]), []],
    'status.freshness has more than 1000 members',
  ],
  [
    'more slices that are withdrawn than a frame may name',
    [15, [], Array(1_001).fill(amber)],
    'status.withdrawn has more than 1000 members',
  ],
  [
    'more freshness over a link than a frame may report',
    [19, 1, Array(1_001).fill([amber, true, true, 0, true]), 0, true, true],
    'report.freshness has more than 1000 members',
  ],
  ['more synced slices than a frame may name', [27, Array(1_001).fill(amber)], 'synced.slices has more than 1000 members'],
  ['types that may be all or not', [22, [], [], 1], 'types.isAll is neither true nor false'],
  ['a held slice without a term', [17, '', [[amber, '']], true], 'resume.held.syncedTerm is not a number'],
  ['swept keys that are not whole', [23, amber, ['c', '']], 'swept.keys is not a list of records with 3 members each'],
];

for (const [name, message, why] of bad) {
  test(`a frame is refused for ${name}`, (t) => {
    t.throws(() => readFrame(pack(message)), { instanceOf: BadFrame, message: why });
  });
}

test('an error about a frame does not quote it', (t) => {
  for (const at of [0, 1, 2, 4]) {
    const error = t.throws(() => readFrame(pack([3, 1, amber, 'v1', ['c', '', 'n', '1', null]].with(at, 'secret'))));
    t.notRegex(error.message, /secret/);
  }
});

test('half a surrogate pair is written as the replacement character, and too long a message is cut', (t) => {
  const broken = readFrame(writeFrame({ kind: 'route', route: ['a\ud800b', '\udc00'] }));
  const long = readFrame(writeFrame({ kind: 'resync', slice: exportsOfAmber, reason: '😀'.repeat(3000) + 'x' }));

  t.deepEqual(broken, { kind: 'route', route: ['a\ufffdb', '\ufffd'] });
  t.is(long.kind === 'resync' ? long.reason : '', '😀'.repeat(2048));
});

test('junk and altered frames are read or refused quickly, and leave no memory behind', (t) => {
  const frames = someFrames.map(writeFrame);
  const random = randomFrom(20_261_121);
  const before = keptBytes();
  let slowestMs = 0;
  let read = 0;

  for (let round = 0; round < rounds(100_000); round += 1) {
    const bytes = round % 4 === 0 ? junk(random) : mutated(frames[round % frames.length] ?? Buffer.alloc(0), random);
    const begun = performance.now();
    if (isFrame(bytes)) read += 1;
    const tookMs = performance.now() - begun;
    if (tookMs > slowestMs)
      slowestMs = Math.max(
        slowestMs,
        Math.min(
          tookMs,
          fastestMs(() => isFrame(bytes), 3),
        ),
      );
  }

  t.true(read > 1000);
  t.true(slowestMs < 100, `one took ${slowestMs} ms`);
  const grownMiB = (keptBytes() - before) / 2 ** 20;
  t.true(grownMiB < 4, `memory grew by ${grownMiB} MiB`);
});

test('even the most expensive messages block the event loop for less than 100 ms', (t) => {
  const values = 149_999;
  const head = Buffer.from('dd000249ef', 'hex');
  const dearest = [
    Buffer.concat([head, Buffer.alloc(values, 0x90)]),
    Buffer.concat([head, Buffer.alloc(values, 0xa0)]),
    pack([17, '', Array(10_000).fill([amber, 'p', 1]), true]),
    pack([3, 1, amber, 'v1', Array(50_000).fill('grün')]),
    pack([7, amber, 'ü'.repeat(4 * 2 ** 20)]),
  ];

  for (const bytes of dearest) {
    t.true(fastestMs(() => isFrame(bytes), 10) < 100);
  }
});

test('declared lengths alone allocate no memory', (t) => {
  const declared = ['ddffffffff', 'dcffff', 'dfffffffff', 'dbffffffff', 'c6ffffffff', 'c9ffffffff01', '9103ddffffffffc0'];

  for (const hex of declared) {
    const bytes = Buffer.concat([Buffer.from(hex, 'hex'), Buffer.alloc(64)]);
    const before = process.memoryUsage();
    t.false(isFrame(bytes));
    const after = process.memoryUsage();
    t.true(after.heapUsed + after.external - before.heapUsed - before.external < 2 ** 20);
  }
});

test('msgpackr is the build that generates no code and loads no native parts', (t) => {
  const { cache, resolve } = createRequire(import.meta.url);
  const loaded = Object.keys(cache).filter((path) => path.includes('msgpackr'));

  t.deepEqual(loaded, [resolve('msgpackr/index-no-eval')]);
  t.notRegex(readFileSync(resolve('msgpackr/index-no-eval'), 'utf8'), /\bnew\s+Function\b|\beval\s*\(/);
});

/** The memory in use after garbage collection. */
function keptBytes(): number {
  collectGarbage();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

/** Any other error is a bug. */
function isFrame(bytes: Uint8Array): boolean {
  try {
    readFrame(bytes);
    return true;
  } catch (error) {
    if (error instanceof BadFrame) return false;
    throw error;
  }
}

function junk(random: () => number): Uint8Array {
  return Uint8Array.from({ length: Math.floor(random() * 64) }, () => Math.floor(random() * 256));
}

function mutated(bytes: Uint8Array, random: () => number): Uint8Array {
  const copy = Uint8Array.from(bytes);
  for (let change = 0; change <= random() * 3; change += 1) copy[Math.floor(random() * copy.length)] = Math.floor(random() * 256);
  return random() < 0.2 ? copy.subarray(0, Math.floor(random() * copy.length)) : copy;
}

/** Random numbers from 0 to 1, the same in every run. */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}
