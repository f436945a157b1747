/**
 * All questions, in the order of asking. Those over HTTP come first, while the measured server
 * holds only their objects. The last two inspect the whole run.
 */
import type { Question } from './harness/question.js';
import { gzip } from './lists/gzip.js';
import { informers, manyInformers, oneInformer } from './lists/informers.js';
import { list } from './lists/list.js';
import { oneCluster } from './lists/one-cluster.js';
import { page } from './lists/page.js';
import { loop } from './process/loop.js';
import { memory } from './process/memory.js';
import { declaredTypes } from './push/declared-types.js';
import { flood } from './push/flood.js';
import { hotObject } from './push/hot-object.js';
import { push } from './push/push.js';
import { pushDelay } from './push/push-delay.js';
import { resync } from './push/resync.js';
import { create } from './requests/create.js';
import { get } from './requests/get.js';
import { lookUp } from './requests/look-up.js';
import { mixed } from './requests/mixed.js';
import { update } from './requests/update.js';
import { deletedClusters } from './scale/deleted-clusters.js';
import { deletedPaths } from './scale/deleted-paths.js';
import { hundredThousand, million } from './scale/scale.js';
import { tierChildren } from './tiers/tier-children.js';
import { tierDelay } from './tiers/tier-delay.js';
import { tierFilter } from './tiers/tier-filter.js';
import { tierMove } from './tiers/tier-move.js';
import { tierReturn } from './tiers/tier-return.js';
import { tierSlices } from './tiers/tier-slices.js';
import { tierSync } from './tiers/tier-sync.js';
import { clusterWatches } from './watches/cluster-watches.js';
import { delays } from './watches/delay.js';
import { delayAcross } from './watches/delay-across.js';
import { fanOut } from './watches/fan-out.js';
import { openWatches } from './watches/open-watches.js';
import { slowWatchers } from './watches/slow-watchers.js';

export const questions: readonly Question[] = [
  get,
  update,
  create,
  mixed,
  list,
  page,
  oneCluster,
  gzip,
  oneInformer,
  informers,
  manyInformers,
  fanOut,
  ...delays,
  delayAcross,
  clusterWatches,
  openWatches,
  slowWatchers,
  push,
  resync,
  pushDelay,
  flood,
  hotObject,
  declaredTypes,
  hundredThousand,
  million,
  deletedPaths,
  deletedClusters,
  tierDelay,
  tierSync,
  tierFilter,
  tierSlices,
  tierMove,
  tierChildren,
  tierReturn,
  lookUp,
  memory,
  loop,
];
