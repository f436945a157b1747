import { test } from '../../support/test.js';
import { nextPhase, type SyncEvent, type SyncPhase } from '../../../src/tree/syncs/sync-phase.js';

const events: readonly SyncEvent[] = ['wanted', 'asked', 'begun', 'walked', 'ended'];

/** The transitions that the header of sync-phase.ts draws; '–' cannot happen. */
const table: Readonly<Record<SyncPhase, readonly (SyncPhase | '–')[]>> = {
  new: ['new', '–', 'syncing', '–', '–'],
  waiting: ['waiting', 'comparing', 'syncing', '–', '–'],
  comparing: ['waiting', '–', 'syncing', 'sent', '–'],
  syncing: ['waiting', '–', '–', 'sent', '–'],
  sent: ['waiting', '–', '–', '–', 'current'],
  current: ['waiting', '–', '–', '–', 'current'],
};

for (const phase of ['new', 'waiting', 'comparing', 'syncing', 'sent', 'current'] as const)
  test(`a slice that is ${phase} moves on as the table says`, (t) => {
    const went = events.map((event) => nextPhase(phase, event) ?? '–');

    t.deepEqual(went, [...table[phase]]);
  });
