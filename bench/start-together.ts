/**
 * How long until 32 informers that start together all have their bookmark?
 *
 * This is a region that comes back after its cache restarted. Each informer has a connection of its own, as processes have.
 * At most 3 s, and every one has every object. The ceiling is the same bytes, 32 times, from a bare server.
 */
import { join } from 'node:path';
import { median } from './harness/jobs.js';
import { check, type Question } from './harness/question.js';
import { formatShare } from './harness/report.js';

const secondsMax = 3;

export const startTogether: Question = {
  name: 'start-together',
  asks: 'How long until 32 informers that start together all have their bookmark?',
  async ask({ load, target, bare, folder, options }) {
    const { informers, objects } = options;
    const watchListFile = join(folder, 'watch-list.json');
    await load.ask('watchList', { target, protocol: 'HTTP/1.1', informers: 1, objects, saveTo: watchListFile });
    await bare.serve({ watchListFile });

    const ceiling = await load.ask('watchList', { target: bare.target, protocol: 'HTTP/1.1', informers, objects });
    const started = await load.ask('watchList', { target, protocol: 'HTTP/1.1', informers, objects });
    const incomplete = started.informers.filter(({ distinctObjects, events }) => distinctObjects !== objects || events !== objects).length;
    return {
      figures: [
        {
          name: 'all have their bookmark',
          value: started.elapsedMs / 1_000,
          unit: 's',
          limit: { kind: 'at most', value: secondsMax },
          ceiling: ceiling.elapsedMs / 1_000,
          note: `${informers} informers, ${objects} objects each; client ${formatShare(load.busy)} busy`,
        },
        {
          name: 'half of them',
          value: median(started.informers.map(({ elapsedMs }) => elapsedMs)) / 1_000,
          unit: 's',
          ceiling: median(ceiling.informers.map(({ elapsedMs }) => elapsedMs)) / 1_000,
        },
      ],
      checks: [
        check(
          'every informer gets every object, once, before its bookmark (G3, G4)',
          incomplete === 0,
          `${incomplete} of ${informers} do not`,
        ),
      ],
    };
  },
};
