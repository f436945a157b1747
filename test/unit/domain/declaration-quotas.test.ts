/**
 * Which declarations have room: random histories are checked against invariants, and the cost of a
 * change is measured.
 */
import { rounds } from '../../support/sizes.js';
import { test } from '../../support/test.js';
import type { Declaration } from '../../../src/domain/catalogue/declaration.js';
import { DeclarationQuotas } from '../../../src/domain/catalogue/declaration-quotas.js';
import { seeded } from '../../support/crash/random.js';
import { processorMs } from '../../support/fastest.js';

const seed = Number(process.env['TEST_SEED'] ?? Date.now() % 1_000_000_000);

function aDeclaration(type: string, cluster: string, name: string, shard = 'amber'): Declaration {
  const resource = { group: 'machines.svm.io', resource: 'instances', identity: type };
  return { ...resource, place: { shard, cluster, name }, version: 'v1', kind: 'Instance', namespaced: false };
}

for (const [i, waitingMax] of [4, 1_000].entries())
  test(`no declaration waits while there is room, and none gets room that does not exist, if ${waitingMax} may wait`, (t) => {
    t.log(`TEST_SEED=${seed}`);
    const random = seeded(seed + i);
    const limits = { ofShardMax: 9, ofTypeMax: 4, ofClusterMax: 3, waitingMax };
    const quotas = new DeclarationQuotas(limits);
    /**
     * Every known declaration, and whether it declares its type. Forgotten declarations are not in
     * the map.
     */
    const known = new Map<string, { declaration: Declaration; declares: boolean }>();
    const keyOf = ({ place: { shard, cluster, name } }: Declaration): string => `${shard}/${cluster}/${name}`;
    const all = (): readonly Readonly<{ declaration: Declaration; declares: boolean }>[] => [...known.values()];
    const declaring = (isCounted: (declaration: Declaration) => boolean): number =>
      all().filter(({ declaration, declares }) => declares && isCounted(declaration)).length;

    for (let step = 0; step < rounds(20_000); step += 1) {
      const [shard, cluster, name, type] = [
        ['amber', 'birch'],
        ['c1', 'c2', 'c3', 'c4'],
        ['a', 'b', 'c', 'd'],
        ['x', 'y', 'z'],
      ].map((names) => names[random.below(names.length)]!) as [string, string, string, string];
      const declaration = aDeclaration(type, cluster, name, shard);
      const next = random.below(5) < 3 ? declaration : undefined;
      const key = keyOf(declaration);
      const before = known.get(key);
      const waitingBefore = all().filter((each) => !each.declares && each.declaration.place.shard === shard && each !== before).length;

      const { former, ended, begun } = quotas.replace(declaration.place, next);

      t.is(former, before?.declaration);
      t.deepEqual(ended, before?.declares === true ? [before.declaration] : []);
      known.delete(key);
      if (next !== undefined && (begun.includes(next) || waitingBefore < waitingMax))
        known.set(key, { declaration: next, declares: false });
      for (const each of begun) {
        const entry = known.get(keyOf(each));
        if (entry?.declaration !== each || entry.declares) return t.fail(`step ${step}: ${keyOf(each)} begins, and should not`);
        entry.declares = true;
      }
      for (const { declaration: each, declares } of all()) {
        const { place } = each;
        const ofShard = declaring((other) => other.place.shard === place.shard);
        const ofType = declaring((other) => other.place.shard === place.shard && other.identity === each.identity);
        const ofCluster = declaring((other) => other.place.shard === place.shard && other.place.cluster === place.cluster);
        const isFull = ofShard >= limits.ofShardMax || ofType >= limits.ofTypeMax || ofCluster >= limits.ofClusterMax;
        if (!declares && !isFull) return t.fail(`step ${step}: ${keyOf(each)} waits without need`);
        if (ofShard > limits.ofShardMax || ofType > limits.ofTypeMax || ofCluster > limits.ofClusterMax)
          return t.fail(`step ${step}: more than there is room for, with ${keyOf(each)}`);
      }
      for (const identity of ['x', 'y', 'z']) {
        const isAwaited = all().some(({ declaration: each, declares }) => !declares && each.identity === identity);
        if (quotas.isAwaited(aDeclaration(identity, 'c1', 'a')) !== isAwaited)
          return t.fail(`step ${step}: ${identity} is awaited: ${isAwaited}`);
      }
    }
    for (const { declaration } of all()) quotas.replace(declaration.place, undefined);
    t.false(['x', 'y', 'z'].some((identity) => quotas.isAwaited(aDeclaration(identity, 'c1', 'a'))));
  });

test('a change costs the same however many declarations wait, for the type or for the shard', (t) => {
  const quotas = new DeclarationQuotas();
  const put = (type: string, cluster: string, name = type): void =>
    void quotas.replace(aDeclaration(type, cluster, name).place, aDeclaration(type, cluster, name));
  for (let i = 0; i < 1_000; i += 1) put('popular', `p${i}`);
  for (let i = 0; i < 4_000; i += 1) put(`own-${i}`, `o${i}`);
  for (let i = 0; i < 20_000; i += 1) put('popular', `w${i}`);

  const startedMs = processorMs();
  for (let round = 0; round < 500; round += 1) {
    // First the type has room and the shard has none, then the other way round.
    put('other', `p${round}`, 'popular');
    quotas.replace(aDeclaration('', `o${round}`, `own-${round}`).place, undefined);
    put('popular', `p${round}`);
    put(`own-${round}`, `o${round}`);
  }
  const tookMs = processorMs() - startedMs;

  t.log(`2,000 changes in ${tookMs.toFixed(0)} ms of the processor`);
  t.true(tookMs < 1_000);
});
