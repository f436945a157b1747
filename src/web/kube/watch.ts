/**
 * WATCH and WatchList. The parameters are checked first; a later error becomes an ERROR event.
 *
 *   resourceVersion  sendInitialEvents unset       true (NotOlderThan)             false
 *   unset, "0"       the present state, then live  the present state, then live    live from now
 *   ours             live after it                 the present state, what has     live after it
 *                                                  been deleted since, then live
 *   above            ERROR 410                     ERROR 504: the client lists     ERROR 410
 *   below            ERROR 410                     the present state, then live    ERROR 410
 *
 * `Located` in `domain/revision.ts` defines "ours", "above" and "below".
 */
import { expired, resourceVersionTooLarge, type Refusal } from '../../domain/errors.js';
import type { Revision } from '../../domain/revision.js';
import { mustParse } from '../../domain/parsed.js';
import type { WatchRequest, WatchStart } from '../../domain/ports.js';
import type { MemoryReservation } from '../../domain/base/memory-reservation.js';
import type { Exchange } from '../../http/exchange.js';
import {
  answeredAs,
  changesMeaning,
  formOf,
  narrow,
  meaningChanged,
  hasMeaningChangedSince,
  type Answer,
  type Call,
  type KubePorts,
} from './call.js';
import { watchRepresentation } from '../formats/encodings.js';
import { parseWatchOptions, selectorBytes, type WatchOptions } from './list-options.js';
import { send } from '../../http/send.js';

/** How long a stalled client may take to read the last bytes of an ended watch. */
const lastBytesMs = 10_000;
/** A watch ends this long before its caller's certificate expires. */
const certificateRestMs = 1_000;

export async function watch(call: Call, ports: KubePorts): Promise<Answer> {
  const answered = answeredAs(call, 'watch');
  const options = mustParse(parseWatchOptions(call.query, ports.limits));
  const form = formOf(call, answered, ports.clock);
  const { scope, selector } = narrow(call, options.selector);
  const { exchange } = call;
  exchange.becomeWatch(selectorBytes(call.query));

  const representation = watchRepresentation(form);
  const start = startOf(options, call, ports);
  if (exchange.isOver) return { kind: 'streamed' };
  openResponse(exchange);
  if (call.request.method === 'HEAD') exchange.finish();
  else if (start.kind === 'refused') await send(onlyError(representation.error(start.refusal), exchange.memory), exchange);
  else {
    const timeoutMs = timeoutOf(options, exchange, ports);
    const { bookmarks } = options;
    await follow(call, ports, { scope, selector, representation, start, bookmarks, timeoutMs, memory: exchange.memory, sink: exchange });
  }
  return { kind: 'streamed' };
}

async function follow(call: Call, ports: KubePorts, request: WatchRequest): Promise<void> {
  const { exchange, bound } = call;
  const open = ports.watches.open(request);
  // If all three are undefined, no commit can change the meaning of the URL.
  const canShowOthers = [bound.path, bound.shownBy, bound.declaredBy].some((leads) => leads !== undefined);
  const moves = canShowOthers
    ? ports.commits.subscribe((commit) => {
        if (changesMeaning(commit, call, ports.catalogue)) open.end(meaningChanged());
      })
    : undefined;
  exchange.onEnd(() => open.abandon());
  exchange.limit(request.timeoutMs + lastBytesMs, () => exchange.cut());
  try {
    await send(open, exchange);
  } finally {
    moves?.cancel();
  }
}

function openResponse({ response }: Exchange): void {
  response.statusCode = 200;
  response.setHeader('content-type', 'application/json');
  response.setHeader('cache-control', 'no-cache, private');
  response.flushHeaders();
}

function startOf(options: WatchOptions, call: Call, ports: KubePorts): WatchStart | Readonly<{ kind: 'refused'; refusal: Refusal }> {
  const { resourceVersion, sendInitialEvents, bookmarks } = options;
  // Only a WatchList gets a bookmark that marks the end of its initial events.
  const endsWithBookmark = bookmarks && sendInitialEvents === true;
  const { revisions, history } = ports;
  const { published } = revisions;
  const hasMoved = (since: Revision): boolean => hasMeaningChangedSince(since, call, ports);
  if (hasMoved(call.bound.at)) return { kind: 'refused', refusal: meaningChanged() };
  if (resourceVersion === '' || resourceVersion === '0') {
    return sendInitialEvents === false
      ? { kind: 'after', revision: published }
      : { kind: 'initial', endsWithBookmark, forgetSince: undefined };
  }
  const located = revisions.locate(resourceVersion);
  if (sendInitialEvents === true) {
    if (located.kind === 'above')
      return { kind: 'refused', refusal: resourceVersionTooLarge(resourceVersion, revisions.format(published)) };
    const isRemembered = located.kind === 'ours' && history.remembers(located.revision) && !hasMoved(located.revision);
    return { kind: 'initial', endsWithBookmark, forgetSince: isRemembered ? located.revision : undefined };
  }
  if (located.kind === 'ours' && hasMoved(located.revision)) return { kind: 'refused', refusal: meaningChanged() };
  if (located.kind === 'ours') return { kind: 'after', revision: located.revision };
  return { kind: 'refused', refusal: expired(`too old resource version: ${resourceVersion} (${revisions.format(published)})`) };
}

/**
 * Without a timeout in the request, the server picks one between its minimum and twice that. So
 * watches do not all end together. No watch outlasts `watchTimeoutMaxMs`. A watch ends a little
 * before its caller's certificate expires, so that its end can still be sent.
 */
function timeoutOf({ timeoutSeconds }: WatchOptions, { validUntilMs = Infinity }: Exchange, { clock, limits, random }: KubePorts): number {
  const askedMs = timeoutSeconds === undefined ? limits.watchTimeoutMinMs * (1 + random()) : timeoutSeconds * 1000;
  return Math.max(0, Math.min(askedMs, limits.watchTimeoutMaxMs, validUntilMs - clock.wallMs() - certificateRestMs));
}

async function* onlyError(error: Uint8Array, memory: MemoryReservation): AsyncGenerator<readonly Uint8Array[]> {
  memory.add(error.length);
  yield [error];
}
