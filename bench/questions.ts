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
import { treeChildren } from './tree/children.js';
import { treeDelay } from './tree/delay.js';
import { treeFilter } from './tree/filter.js';
import { treeMove } from './tree/move.js';
import { treeReturn } from './tree/return.js';
import { treeSlices } from './tree/slices.js';
import { treeSync } from './tree/sync.js';
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
  treeDelay,
  treeSync,
  treeFilter,
  treeSlices,
  treeMove,
  treeChildren,
  treeReturn,
  lookUp,
  memory,
  loop,
];
