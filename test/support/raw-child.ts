/** A child that sends a real cache exactly what a test wants. It has a certificate of its own, and its policies let everything through. */
import type { ShardName } from '../../src/domain/shard.js';
import { RawPusher, type PushTarget } from './raw-pusher.js';
import type { Certificate, TestAuthority } from './test-authority.js';

/** A server to be a child of. */
type Parent = PushTarget & Readonly<{ authority: TestAuthority }>;

const everything = JSON.stringify([{ types: ['*'] }]);

/** Of each name one: openssl takes longer to issue it than the child to connect. */
const certificates = new WeakMap<TestAuthority, Map<string, Promise<Certificate>>>();

/** `id`: of its cache. */
export async function openChild(server: Parent, name = 'east', id = `id-of-${name}`): Promise<RawPusher> {
  const child = await greetingChild(server, name, id);
  await child.expect('welcome');
  child.socket.send({ kind: 'policy', up: everything, down: everything });
  child.socket.send({ kind: 'resume', position: '', held: [], isLast: true });
  return child;
}

/** A child that has said hello. */
export async function greetingChild(server: Parent, name = 'east', id = `id-of-${name}`): Promise<RawPusher> {
  const child = await RawPusher.connect(server, await certificateOf(server.authority, name));
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

function certificateOf(authority: TestAuthority, name: string): Promise<Certificate> {
  const issued = certificates.get(authority) ?? new Map<string, Promise<Certificate>>();
  certificates.set(authority, issued);
  const certificate = issued.get(name) ?? authority.issue({ user: name, groups: ['strata'], uris: [`strata://cache/${name}`] });
  issued.set(name, certificate);
  return certificate;
}

/** Pushes after this resolves are decided after the claim. */
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
