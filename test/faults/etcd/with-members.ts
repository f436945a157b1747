import type { ExecutionContext } from 'ava';
import { EtcdMembers, type EtcdOptions } from './etcd-members.js';
import { etcdProgram } from './etcd-program.js';

/** Starts members; undefined if there is no etcd: the test then logs why, and passes. */
export async function members(t: ExecutionContext, options: EtcdOptions = {}): Promise<EtcdMembers | undefined> {
  t.timeout(360_000);
  const found = await etcdProgram();
  if ('program' in found) return EtcdMembers.start(found, options);
  t.log(`skipped: ${found.why}`);
  t.pass();
  return undefined;
}

export function bytes(text: string): Uint8Array {
  return Buffer.from(text);
}

export function text(value: Uint8Array): string {
  return Buffer.from(value).toString();
}
