import test from 'ava';
import { nextPhase, type CourseEvent, type CoursePhase } from '../../src/tier/course-phase.js';

const events: readonly CourseEvent[] = ['wanted', 'asked', 'begun', 'walked', 'ended'];

/** As the header of course-phase.ts draws it; '–' is what cannot happen. */
const table: Readonly<Record<CoursePhase, readonly (CoursePhase | '–')[]>> = {
  new: ['new', '–', 'stating', '–', '–'],
  waiting: ['waiting', 'comparing', 'stating', '–', '–'],
  comparing: ['waiting', '–', 'stating', 'told', '–'],
  stating: ['waiting', '–', '–', 'told', '–'],
  told: ['waiting', '–', '–', '–', 'in step'],
  'in step': ['waiting', '–', '–', '–', 'in step'],
};

for (const phase of ['new', 'waiting', 'comparing', 'stating', 'told', 'in step'] as const)
  test(`a slice that is ${phase} goes on as the table says`, (t) => {
    const went = events.map((event) => nextPhase(phase, event) ?? '–');

    t.deepEqual(went, [...table[phase]]);
  });
