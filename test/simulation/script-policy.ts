/**
 * The policies that scripts choose from. All of them let the anchors of every slice through, so
 * that claims always cross (model-tree.ts).
 */
import type { ModelRule } from './model-rule.js';
import type { ModelCache } from './model-tree.js';

/**
 * A cache's policies, each by its place in the list; higher numbers start over at the beginning of
 * the list.
 */
export type PolicyChoice = Readonly<{ forward: number; follow: number; accept: number; offer: number }>;

const anchors: ModelRule = { labels: { anchor: 'yes' } };

const policies: readonly (readonly ModelRule[])[] = [
  [{ types: ['*'] }],
  [anchors, { labels: { visibility: 'private' } }],
  [anchors, { labels: { visibility: 'public' } }],
  [anchors, { labels: { visibility: 'public' } }, { types: ['*'], labels: { visibility: 'private' } }],
  [anchors, { types: ['apiexports.apis.kcp.io'] }],
  [anchors, { types: ['instances.machines.svm.io'], labels: { visibility: 'private' } }],
  [anchors, { pathPrefix: 'root:east' }],
  [anchors, { clusters: ['base'] }, { types: ['apiresourceschemas.apis.kcp.io'], pathPrefix: 'root:west' }],
];

export function aScriptPolicy({ forward, follow, accept, offer }: PolicyChoice): Pick<ModelCache, 'forward' | 'follow' | 'children'> {
  return { forward: pick(forward), follow: pick(follow), children: { '*': { accept: pick(accept), offer: pick(offer) } } };
}

function pick(number: number): readonly ModelRule[] {
  return policies[number % policies.length] ?? [];
}
