/** What a sender may leave out of a batch, by examples and by the final state of a receiver. */
import fc from 'fast-check';
import { rounds } from '../../support/sizes.js';
import { test } from '../../support/test.js';
import { parseClusterName } from '../../../src/domain/cluster.js';
import { coalesce } from '../../../src/sender/batch.js';
import type { Outgoing } from '../../../src/sender/source.js';

const encoder = new TextEncoder();
const acme = parseClusterName('acme')!;

/**
 * `a7`: a is put in its seventh state; `a=`: a is kept; `a-`: a is deleted; `<`, `>`: begin and end
 * of the slice; `(`, `)`: begin and end of acme, which contains all objects.
 */
function batchOf(words: string): readonly Outgoing[] {
  return words.split(' ').map((word): Outgoing => {
    if (word === '<') return { kind: 'begin', revision: '' };
    if (word === '>') return { kind: 'end', revision: '9' };
    if (word === '(') return { kind: 'clusterBegin', cluster: acme };
    if (word === ')') return { kind: 'clusterEnd', cluster: acme };
    const [name = '', state = ''] = [word.slice(0, 1), word.slice(1)];
    const key = { cluster: 'acme', namespace: '', name };
    if (state === '-') return { kind: 'delete', key };
    const body = state === '=' ? undefined : encoder.encode(state);
    return { kind: 'put', version: 'v1', object: { ...key, sourceVersion: state, body } };
  });
}

function wordsOf(batch: readonly Outgoing[]): string {
  const words = batch.map((outgoing) => {
    if (outgoing.kind === 'begin') return '<';
    if (outgoing.kind === 'end') return '>';
    if (outgoing.kind === 'clusterBegin') return '(';
    if (outgoing.kind === 'clusterEnd') return ')';
    if (outgoing.kind === 'clusterKeep') return '=';
    return outgoing.kind === 'delete' ? `${outgoing.key.name}-` : `${outgoing.object.name}${outgoing.object.sourceVersion}`;
  });
  return words.join(' ');
}

for (const [given, expected, why] of [
  ['a1', 'a1', 'one'],
  ['a1 b1 a2', 'b1 a2', 'the newest state is sent'],
  ['a1 a-', 'a-', 'a deletion replaces what came before it'],
  ['a1 a- a2 a3', 'a- a3', 'a deletion is seen before the object that comes after it'],
  ['a- a1 a-', 'a-', 'and the last of two deletions alone, if nothing is left between'],
  ['a1 a=', 'a1 a=', 'what is as it was replaces nothing'],
  ['a1 < a2 > a3', 'a1 < a2 > a3', 'nothing is replaced across a begin or an end'],
  ['a1 ( a2 ) a3', 'a1 ( a2 ) a3', 'nor across those of a logical cluster'],
  ['< a1 a2 > a3 a4', '< a2 > a4', 'but within them, and behind them'],
] as const)
  test(`of ${given}, ${expected} is sent: ${why}`, (t) => {
    t.is(wordsOf(coalesce(batchOf(given))), expected);
  });

test('keys that are equal when joined as text are different objects', (t) => {
  const put = (cluster: string, namespace: string, name: string): Outgoing => ({
    kind: 'put',
    version: 'v1',
    object: { cluster, namespace, name, sourceVersion: '1', body: encoder.encode('1') },
  });
  t.is(coalesce([put('a', 'b', 'c'), put('a', '', 'b/c'), put('ab', '', 'c'), put('a', 'bc', '')]).length, 4);
});

test('a coalesced batch gives the same final state, and shows a deletion before an object that was recreated', (t) => {
  const word = fc.constantFrom('a1', 'a2', 'a=', 'a-', 'b1', 'b2', 'b-', '<', '>', '(', ')');
  fc.assert(
    fc.property(fc.array(word, { minLength: 1, maxLength: 12 }), (words) => {
      const batch = batchOf(words.join(' '));
      const sent = coalesce(batch);
      t.deepEqual(endOf(sent), endOf(batch));
      t.deepEqual(lasts(sent), lasts(batch));
    }),
    { numRuns: rounds(2_000) },
  );
});

/** What a receiver holds at the end, and what was named since the last begin. */
function endOf(batch: readonly Outgoing[]): unknown {
  let held = new Map<string, string>();
  let named: Set<string> | undefined;
  let namedOfAcme: Set<string> | undefined;
  for (const outgoing of batch) {
    if (outgoing.kind === 'begin') {
      named = new Set();
      namedOfAcme = undefined;
    } else if (outgoing.kind === 'clusterBegin') namedOfAcme = new Set();
    else if (outgoing.kind === 'end' || outgoing.kind === 'clusterEnd') {
      const kept = outgoing.kind === 'end' ? named : namedOfAcme;
      if (kept !== undefined) held = new Map([...held].filter(([name]) => kept.has(name)));
      if (outgoing.kind === 'end') named = undefined;
      else namedOfAcme = undefined;
    } else if (outgoing.kind === 'clusterKeep') throw new Error('these histories keep nothing');
    else if (outgoing.kind === 'delete') {
      held.delete(outgoing.key.name);
      for (const each of [named, namedOfAcme]) each?.delete(outgoing.key.name);
    } else {
      const { name, sourceVersion, body } = outgoing.object;
      for (const each of [named, namedOfAcme]) each?.add(name);
      if (body !== undefined) held.set(name, sourceVersion);
    }
  }
  return [...held].toSorted();
}

/**
 * Between begins and ends: the last state of each object, and whether it was deleted before it was
 * put.
 */
function lasts(batch: readonly Outgoing[]): Readonly<Record<string, string>> {
  const found: Record<string, string> = {};
  let stretch = 0;
  for (const outgoing of batch) {
    if (outgoing.kind === 'delete') found[`${stretch} ${outgoing.key.name}`] = 'deleted';
    else if (outgoing.kind !== 'put') stretch += 1;
    else if (outgoing.object.body !== undefined) {
      const place = `${stretch} ${outgoing.object.name}`;
      found[place] = `${outgoing.object.sourceVersion}${/deleted|anew/.test(found[place] ?? '') ? ' anew' : ''}`;
    }
  }
  return found;
}
