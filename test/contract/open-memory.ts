import { setImmediate } from 'node:timers';
import type { ExecutionContext } from 'ava';
import { ManualClock } from '../support/store/manual-clock.js';
import { MemoryDisk } from '../../src/store/memory/disk.js';
import { memoryStoreOptions } from '../../src/store/memory/store-options.js';
import { MemoryStore } from '../../src/store/memory/store.js';
import type { Engine, EngineBounds } from './store-contract.js';

/** The memory engine: what it has kept is its disk. */
export async function openMemory(_: ExecutionContext, bounds: EngineBounds): Promise<Engine> {
  const { queue, page, historyChangesMax, tombstonesMax } = memoryStoreOptions;
  const options = {
    queue: { ...queue, mutationsMax: bounds.mutationsMax ?? queue.mutationsMax },
    page: { rowsMax: bounds.pageRowsMax ?? page.rowsMax, bytesMax: bounds.pageBytesMax ?? page.bytesMax },
    historyChangesMax: bounds.changesMax ?? historyChangesMax,
    tombstonesMax: bounds.tombstonesMax ?? tombstonesMax,
    ...(bounds.keptNames && { keptNames: bounds.keptNames }),
  };
  const disk = MemoryDisk.blank(Math.random);
  const open = (): MemoryStore =>
    new MemoryStore(disk, { clock: new ManualClock(), soon: (task) => setImmediate(task), random: Math.random }, options);
  const engine = {
    traits: { ordersWrites: true, keepsTombstones: true, keepsTimes: true, keepsPaths: true },
    store: open(),
    restart: async () => {
      await engine.store.close();
      engine.store = open();
      return engine.store;
    },
    compact: async () => engine.store.compact(),
  };
  return engine;
}
