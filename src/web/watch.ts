/**
 * WATCH and WatchList (S9–S19). Parameters are checked first; what is wrong later comes as an ERROR event (S11).
 *
 *   resourceVersion   sendInitialEvents unset        true (NotOlderThan)                 false
 *   unset, "0"        what is there, then live       what is there, then live            live from now
 *   ours              live behind it                 what is there, what is gone, live   live behind it
 *   above (S14a)      ERROR 410                      ERROR 504, the client drops it      ERROR 410
 *   below (S14a)      ERROR 410                      what is there, then live            ERROR 410
 */
import { expired, Refused, resourceVersionTooLarge, type Refusal } from '../domain/errors.js';
import { mustParse } from '../domain/parsed.js';
import type { Representation, WatchStart } from '../domain/ports.js';
import { answeredAs, formOf, narrow, type Answer, type Call, type KubePorts } from './call.js';
import { watchRepresentation } from './encodings.js';
import { parseWatchOptions, type WatchOptions } from './list-options.js';
import { isGone, send } from './send.js';

/** A reader that has stopped reading gets this long, once its watch has ended, to take the end of it. */
const lastBytesMs = 10_000;

export async function watch(call: Call, ports: KubePorts): Promise<Answer> {
  const answered = answeredAs(call, 'watch');
  const options = mustParse(parseWatchOptions(call.query, ports.limits));
  const form = formOf(call, answered, ports.clock);
  const { scope, selector } = narrow(call, options.selector);
  if (ports.watches.openWatches >= ports.limits.openWatchesMax) throw new Refused(tooManyWatches);

  const representation = watchRepresentation(form);
  const start = startOf(options, ports);
  openResponse(call);
  if (call.request.method === 'HEAD') call.response.end();
  else if (start.kind === 'refused') await send(onlyError(representation, start.refusal), call.response);
  else
    await follow(call, ports, {
      scope,
      selector,
      representation,
      start,
      bookmarks: options.bookmarks,
      timeoutMs: timeoutOf(options, ports),
    });
  return { kind: 'streamed' };
}

async function follow(call: Call, ports: KubePorts, request: Parameters<KubePorts['watches']['open']>[0]): Promise<void> {
  const { canonicalPath, response } = call;
  if (isGone(response)) return;
  const open = ports.watches.open(request);
  // A watch of a canonical path is bound when it opens, and ends when the path leads elsewhere.
  const moves = ports.commits.subscribe(({ movedPaths }) => {
    if (canonicalPath !== undefined && movedPaths.includes(canonicalPath)) open.end();
  });
  const cancel = ports.clock.after(request.timeoutMs + lastBytesMs, () => response.destroy());
  // The end of a watch is sent when its reader takes it, so the time for that runs on behind `send`.
  response.once('close', () => {
    open.end();
    cancel();
  });
  try {
    await send(open, response);
  } finally {
    moves.cancel();
  }
}

/** Headers go out before the first event (S18). */
function openResponse({ response }: Call): void {
  response.statusCode = 200;
  response.setHeader('content-type', 'application/json');
  response.setHeader('cache-control', 'no-cache, private');
  response.flushHeaders();
}

function startOf(options: WatchOptions, { revisions, history }: KubePorts): WatchStart | Readonly<{ kind: 'refused'; refusal: Refusal }> {
  const { resourceVersion, sendInitialEvents } = options;
  const { published } = revisions;
  if (resourceVersion === '' || resourceVersion === '0') {
    return sendInitialEvents === false ? { kind: 'after', revision: published } : { kind: 'initial', forgetSince: undefined };
  }
  const located = revisions.locate(resourceVersion);
  if (sendInitialEvents === true) {
    if (located.kind === 'above')
      return { kind: 'refused', refusal: resourceVersionTooLarge(resourceVersion, revisions.format(published)) };
    const isRemembered = located.kind === 'ours' && history.remembers(located.revision);
    return { kind: 'initial', forgetSince: isRemembered ? located.revision : undefined };
  }
  if (located.kind === 'ours') return { kind: 'after', revision: located.revision };
  return { kind: 'refused', refusal: expired(`too old resource version: ${resourceVersion} (${revisions.format(published)})`) };
}

/** A server that may choose picks a time between its minimum and twice that, so that watches do not end together (S17). */
function timeoutOf({ timeoutSeconds }: WatchOptions, { limits, random }: KubePorts): number {
  return timeoutSeconds === undefined ? limits.watchTimeoutMinMs * (1 + random()) : timeoutSeconds * 1000;
}

async function* onlyError(representation: Representation, refusal: Refusal): AsyncGenerator<readonly Uint8Array[]> {
  yield [representation.error(refusal)];
}

const tooManyWatches: Refusal = {
  reason: 'TooManyRequests',
  message: 'too many watches are open, please try again later',
  details: { retryAfterSeconds: 1 },
};
