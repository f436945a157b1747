import { test } from '../../support/test.js';
import type { Change } from '../../../src/domain/change.js';
import { Refused } from '../../../src/domain/errors.js';
import type { EventItem } from '../../../src/domain/ports.js';
import { eventOf } from '../../../src/watch/event-of.js';
import { everything, selecting } from './a-hub.js';
import { MemoryStore, type Step } from './memory-store.js';

const inView = { team: 'red' };
const outside = { team: 'blue' };

/** The last change of these steps. */
function changeOf(...steps: readonly Step[]): Change {
  const store = new MemoryStore();
  for (const step of steps) store.commit(step);
  return store.log.at(-1)!;
}

const put = (labels: Record<string, string>): Step => ({ put: {}, labels });
const remove: Step = { delete: {} };

function shown(item: EventItem | undefined): string {
  return item === undefined ? 'nothing' : `${item.type} of ${item.object.revision} at ${item.resourceVersion}`;
}

for (const [what, steps, expected] of [
  ['nothing → in', [put(inView)], 'ADDED of 1 at 1'],
  ['nothing → out', [put(outside)], 'nothing'],
  ['in → in', [put(inView), put(inView)], 'MODIFIED of 2 at 2'],
  ['out → in', [put(outside), put(inView)], 'ADDED of 2 at 2'],
  ['in → out', [put(inView), put(outside)], 'DELETED of 1 at 2'],
  ['out → out', [put(outside), put(outside)], 'nothing'],
  ['in → deleted', [put(inView), remove], 'DELETED of 1 at 2'],
  ['out → deleted', [put(outside), remove], 'nothing'],
  ['in → deleted → in', [put(inView), remove, put(inView)], 'ADDED of 3 at 3'],
] satisfies [string, Step[], string][]) {
  test(`with a selector, ${what} is reported as: ${expected}`, (t) => {
    t.is(shown(eventOf(changeOf(...steps), selecting('team=red'))), expected);
  });
}

test('without a selector every change is an event, a delete with the last content at its own revision', (t) => {
  t.is(shown(eventOf(changeOf(put(inView)), everything)), 'ADDED of 1 at 1');
  t.is(shown(eventOf(changeOf(put(inView), put(outside)), everything)), 'MODIFIED of 2 at 2');
  t.is(shown(eventOf(changeOf(put(inView), put(outside), remove), everything)), 'DELETED of 2 at 3');
});

test('an object leaves and enters a selector for an absent label as it does any other', (t) => {
  const selector = selecting('!team');

  t.is(shown(eventOf(changeOf(put({}), put(inView)), selector)), 'DELETED of 1 at 2');
  t.is(shown(eventOf(changeOf(put(inView), put({})), selector)), 'ADDED of 2 at 2');
});

test('a change whose replaced content is compacted is refused as expired, never guessed', (t) => {
  const gone: Change = { ...changeOf(put(inView), remove), previous: () => undefined };

  const error = t.throws(() => eventOf(gone, everything), { instanceOf: Refused });

  t.is(error?.refusal.reason, 'Expired');
});

test('the replaced content is not read if no selector needs it', (t) => {
  const change: Change = { ...changeOf(put(inView), put(inView)), previous: () => t.fail() as never };

  t.is(eventOf(change, everything)?.type, 'MODIFIED');
});
