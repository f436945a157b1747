import { setImmediate } from 'node:timers';
import { setImmediate as turn } from 'node:timers/promises';
import type { ExecutionContext } from 'ava';
import { ManualClock } from '../support/store/manual-clock.js';
import { MemoryDisk, type MemoryStore } from '../support/store/memory-disk.js';
import { storeLimits } from '../support/test-store.js';
import type { Engine, EngineBounds } from './store-contract.js';

/** SQLite as simulations run it. */
export async function openMemory(_: ExecutionContext, { changesMax, tombstonesMax }: EngineBounds): Promise<Engine> {
  const { historyChangesMax, ...history } = storeLimits.history;
  const bounds = { historyChangesMax: changesMax ?? historyChangesMax, tombstonesMax: tombstonesMax ?? history.tombstonesMax };
  const disk = MemoryDisk.blank(Math.random);
  const open = (): MemoryStore =>
    disk.open(
      { clock: new ManualClock(), soon: (task) => setImmediate(task), random: Math.random },
      { history: { ...history, ...bounds }, recentBytesMax: 0 },
    );
  const engine = {
    traits: { ordersWrites: true, keepsTombstones: true, keepsTimes: true, keepsPaths: true },
    store: open(),
    restart: async () => {
      await engine.store.close();
      engine.store = open();
      return engine.store;
    },
    compact: async () => {
      engine.store.compact(bounds.historyChangesMax);
      await turn();
      await turn();
    },
  };
  return engine;
}
