/**
 * Mutations as they cross to the committer's thread: one array of texts, one of numbers and one buffer, which is handed
 * over whole. Cloning a tree of small objects for each of them costs the serving thread several times as much.
 *
 *   texts    shard cluster namespace name version path │ shard cluster …          path '' when there is none
 *   numbers  kind resource expect start end marks×4     │ kind resource …          expect 0 absent, -1 any
 *   bytes    body │ body │ …
 */
import type { Mutation } from '../../domain/mutation.js';
import type { Key } from '../../domain/key.js';
import { formatResource, type Resource } from '../../domain/resource.js';

export type WireBatch = Readonly<{ resources: readonly Resource[]; texts: readonly string[]; numbers: Float64Array; bytes: Uint8Array }>;

const textsEach = 6;
const numbersEach = 9;
const put = 1;
const absent = 0;
const any = -1;

export function packBatch(mutations: readonly Mutation[]): WireBatch {
  const resources = new Map<string, { index: number; resource: Resource }>();
  const texts: string[] = [];
  const numbers = new Float64Array(mutations.length * numbersEach);
  const bytes = new Uint8Array(mutations.reduce((sum, mutation) => sum + (mutation.kind === 'put' ? mutation.body.bytes.length : 0), 0));
  let end = 0;
  mutations.forEach((mutation, i) => {
    const { resource, shard, cluster, namespace, name } = mutation.key;
    const text = formatResource(resource);
    const known = resources.get(text) ?? { index: resources.size, resource };
    resources.set(text, known);
    if (mutation.kind === 'delete') {
      texts.push(shard, cluster, namespace, name, '', '');
      numbers.set([0, known.index, mutation.expect === 'any' ? any : mutation.expect], i * numbersEach);
      return;
    }
    const { body, path, expect } = mutation;
    const { metadataStart, metadataEnd, annotationsAt, revisionAt } = body.marks;
    const start = end;
    bytes.set(body.bytes, start);
    end += body.bytes.length;
    texts.push(shard, cluster, namespace, name, body.version, path ?? '');
    numbers.set(
      [put, known.index, expect === 'absent' ? absent : expect, start, end, metadataStart, metadataEnd, annotationsAt, revisionAt],
      i * numbersEach,
    );
  });
  return { resources: [...resources.values()].map(({ resource }) => resource), texts, numbers, bytes };
}

/** The same mutations again; bodies are views of the batch's buffer. */
export function unpackBatch({ resources, texts, numbers, bytes }: WireBatch): readonly Mutation[] {
  return Array.from({ length: numbers.length / numbersEach }, (_, i): Mutation => {
    const [kind, index = 0, expect = absent, start = 0, end = 0, metadataStart = 0, metadataEnd = 0, annotationsAt = 0, revisionAt = 0] =
      numbers.subarray(i * numbersEach, (i + 1) * numbersEach);
    const [shard, cluster, namespace, name, version = '', path = ''] = texts.slice(i * textsEach, (i + 1) * textsEach);
    const key = { resource: resources[index], shard, cluster, namespace, name } as Key;
    if (kind !== put) return { kind: 'delete', key, expect: expect === any ? 'any' : expect };
    const body = { bytes: bytes.subarray(start, end), version, marks: { metadataStart, metadataEnd, annotationsAt, revisionAt } };
    return {
      kind: 'put',
      key,
      body,
      path: path === '' ? undefined : (path as Extract<Mutation, { kind: 'put' }>['path']),
      expect: expect === absent ? 'absent' : expect,
    };
  });
}
