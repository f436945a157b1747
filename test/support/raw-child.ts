/**
 * A child that sends a real cache exactly what a test wants. It has a certificate of its own, and
 * its policies let everything through.
 */
import type { ShardName } from '../../src/domain/shard.js';
import { RawPusher, type PushTarget } from './raw-pusher.js';
import type { TestAuthority } from './test-authority.js';

type Parent = PushTarget & Readonly<{ authority: TestAuthority }>;

const everything = JSON.stringify([{ types: ['*'] }]);

/** `id`: the id of the child's cache. */
export async function openChild(server: Parent, name = 'east', id = `id-of-${name}`): Promise<RawPusher> {
  const child = await greetingChild(server, name, id);
  await child.expect('welcome');
  child.socket.send({ kind: 'policy', up: everything, down: everything });
  child.socket.send({ kind: 'resume', position: '', held: [], isLast: true });
  return child;
}

export async function greetingChild(server: Parent, name = 'east', id = `id-of-${name}`): Promise<RawPusher> {
  const child = await RawPusher.connect(
    server,
    server.authority.issue({ user: name, groups: ['strata'], uris: [`strata://cache/${name}`] }),
  );
  const credit = { mutations: 10_000, bytes: 10_000_000 };
  const limits = { frameBytesMax: 10_000_000, frameMutationsMax: 1_000, bodyBytesMax: 1_000_000 };
  child.socket.send({
    kind: 'hello',
    protocol: 1,
    role: 'cache',
    name,
    process: '',
    term: 1_000,
    takesOver: false,
    route: [id],
    agent: 'raw',
    credit,
    limits,
  });
  return child;
}

/** Claims the shard; the parent decides later pushes after this claim. */
export function claim(child: RawPusher, shard: ShardName, term = 2_000, removed = false): void {
  child.socket.send({
    kind: 'claim',
    shard,
    term,
    process: 'raw',
    removed,
    origin: 'raw',
    path: ['raw'],
    reached: true,
    isYours: false,
    held: true,
  });
}
