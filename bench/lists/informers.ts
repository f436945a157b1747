/**
 * How long until informers that start together all have their bookmark, handshakes included?
 *
 * This is a region that reconnects after its cache restarted. Each informer has its own connection,
 * as processes have, and the informers watch different types. A server without WatchList is asked
 * for lists. Limits:
 * - 32 informers: 3 s, and an eightieth of the time of upstream's cache server.
 * - One informer: a thirtieth of that time, and three times that of the bare server, which sends
 *   prepared bytes.
 */
import { httpQuestion, type Asking } from '../harness/http-question.js';
import { busy, noSlower, processorValue } from '../harness/loaded-values.js';
import type { Sample } from '../harness/merge-rounds.js';
import { collectionPath, countsByResource, mixedTypes } from '../harness/mixed-objects.js';
import { atMost, check, type Limit, type Question } from '../harness/question.js';

const secondsMax = 3;
const timesCeilingMax = 3;
/** Shares of the time of upstream's cache server. */
const shareOfOne = 1 / 30;
const shareOfMany = 1 / 80;
const msPerSecond = 1_000;
const megabyte = 1e6;

type Limits = Readonly<{ limit?: Limit; ratioLimit?: Limit; ceilingLimit?: Limit }>;

export const oneInformer = informersQuestion(1, { ratioLimit: atMost(shareOfOne), ceilingLimit: atMost(timesCeilingMax) });
export const informers = informersQuestion(32, { limit: atMost(secondsMax), ratioLimit: atMost(shareOfMany) });
export const manyInformers: Question = informersQuestion(256, {}, 1);

function informersQuestion(count: number, limit: Limits, roundsMax = Infinity): Question {
  return httpQuestion({
    name: count === 1 ? 'informer' : `informers-${count}`,
    family: 'lists',
    asks: `How long until ${count === 1 ? 'one informer has its' : `${count} informers that start together all have their`} bookmark?`,
    roundsMax,
    ...(count > 32 && { protocols: ['HTTP/2'] }),
    measure: (asking) => start(count, limit, asking),
  });
}

async function start(count: number, limit: Limits, { client, target, http1, objects }: Asking): Promise<Sample> {
  const paths = mixedTypes.map((type) => collectionPath(type));
  const loaded = await client.run(target, { kind: 'informers', http1, paths, clients: count });
  const counts = countsByResource(objects);
  const expected = Array.from({ length: count }, (_, i) => counts.get(mixedTypes[i % mixedTypes.length]!.resource) ?? 0).reduce(
    (a, b) => a + b,
  );
  const { elapsedMs, p50Ms, bytes, objects: came, watchLists } = loaded;
  const listed = count - watchLists;
  return {
    values: [
      {
        name: count === 1 ? 'bookmark' : `${count} bookmarks`,
        value: elapsedMs / msPerSecond,
        unit: 's',
        better: 'less',
        ...noSlower.less,
        ...limit,
        note: `${(bytes / megabyte).toFixed(0)} MB, ${busy(loaded)}${listed > 0 ? `; ${listed} listed instead` : ''}`,
      },
      ...(count === 1 ? [] : [{ name: 'half of them', value: p50Ms / msPerSecond, unit: 's' }]),
      processorValue('initial object', loaded, came),
    ],
    checks: [check('every informer gets every object once before its bookmark (G3, G4)', came === expected, `${came} of ${expected} came`)],
  };
}
