/**
 * LIST: a stream of stored bytes in chunks. `items` comes before `metadata`, because only the end
 * of a page shows whether there are more items. Memory does not grow with the list.
 */
import { expired, Refused, resourceVersionTooLarge } from '../../domain/errors.js';
import type { Key } from '../../domain/key.js';
import { mustParse } from '../../domain/parsed.js';
import type { ListEncoding } from '../../domain/ports.js';
import type { Objects, Snapshot } from '../../domain/store-port.js';
import type { Revision } from '../../domain/revision.js';
import { isEverything, type Selector } from '../../domain/syntax/selector.js';
import { isSelected } from '../../domain/object-metadata.js';
import type { Scope } from '../../domain/scope.js';
import { acceptsGzip, type Answered } from '../formats/accept.js';
import { encoded } from '../formats/answer.js';
import { answeredAs, formOf, narrow, meaningChanged, hasMeaningChangedSince, type Answer, type Call, type KubePorts } from './call.js';
import { formatContinue, parseContinue } from './continue-token.js';
import { listEncoding } from '../formats/encodings.js';
import { parseListOptions, type ListOptions } from './list-options.js';
import type { ObjectForm } from '../formats/object-form.js';
import { encode } from '../formats/parts.js';
import { withMemory } from '../../domain/base/memory-reservation.js';
import type { Exchange } from '../../http/exchange.js';
import { send } from '../../http/send.js';

/**
 * Remaining items are counted up to this number, because counting is expensive, and Kubernetes
 * calls the count an estimate.
 */
const remainingMax = 10_000;
/** A longer list is streamed, and compressed if the client accepts gzip. */
const longBytesMin = 128 * 1024;

type Page = Readonly<{
  scope: Scope;
  selector: Selector;
  revision: Revision;
  /** Whether the page must show exactly `revision`; otherwise it may show a newer one. */
  isExact: boolean;
  after: Key | undefined;
  limit: number;
}>;

/** The last key of the page, and whether there are more. */
type End = { more: boolean; after: Key | undefined };

type Read = Readonly<{ page: Page; items: AsyncIterable<Uint8Array>; end: End }>;

export async function list(call: Call, ports: KubePorts): Promise<Answer> {
  const answered = answeredAs(call, 'list');
  const options = mustParse(parseListOptions(call.query, ports.limits));
  const form = formOf(call, answered, ports.clock);
  const { scope, selector } = narrow(call, options.selector);
  const { page, items, end } = await read(call, pageOf(options, scope, selector, ports), form, ports);
  // Refuse if the URL meant other objects at the requested revision, or began to mean others while
  // this request waited for shared pages.
  if (hasMeaningChangedSince(Math.min(call.bound.at, page.revision), call, ports) || (await hasChanged(call.bound, ports)))
    throw new Refused(meaningChanged());
  return answerList(
    call,
    listBytes(items, form, () => metadataOf(page, end, ports)),
    answered,
    ports,
  );
}

async function hasChanged({ shownBy }: Call['bound'], { objects }: KubePorts): Promise<boolean> {
  return shownBy !== undefined && (await objects.get(shownBy.key))?.revision !== shownBy.revision;
}

/**
 * Sends a list once its first piece is known, so that an earlier error still becomes a Status. A
 * list from `longBytesMin` on is sent as JSON even if the client prefers YAML. Conversion would
 * need memory for the whole list, and delay other requests.
 */
export async function answerList(
  call: Call,
  pieces: AsyncGenerator<Uint8Array>,
  { encoding }: Answered,
  { limits, gzip }: Pick<KubePorts, 'limits' | 'gzip'>,
): Promise<Answer> {
  const bytes = withMemory(inLongPieces(pieces), call.exchange.memory, limits.pieceBytesMax);
  try {
    return await answerPieces(call, bytes, encoding, gzip);
  } finally {
    // If the reader leaves early, this closes the list's snapshot.
    await bytes.return(undefined);
  }
}

async function answerPieces(
  call: Call,
  bytes: AsyncGenerator<Uint8Array>,
  encoding: Answered['encoding'],
  gzip: KubePorts['gzip'],
): Promise<Answer> {
  const first = await bytes.next();
  const opening = first.done === true ? [] : [first.value];
  const { request, exchange } = call;
  const { response, memory } = exchange;
  // A short first piece is the whole list. Do not read the second piece of a long list here: it
  // would wait for memory that the first one occupies.
  if (first.done === true || first.value.length < longBytesMin) return encoded(200, opening, { encoding, heavy: call.heavy });

  if (exchange.isOver) return { kind: 'streamed' };
  response.statusCode = 200;
  response.setHeader('content-type', 'application/json');
  response.setHeader('cache-control', 'no-cache, private');
  const pieces = chain(opening, bytes);
  if (request.method === 'HEAD') exchange.finish();
  else if (acceptsGzip(request.headers['accept-encoding'])) {
    response.setHeader('content-encoding', 'gzip');
    response.setHeader('vary', 'Accept-Encoding');
    await send(gzip.stream(pieces, memory), exchange);
  } else await send(oneByOne(pieces), exchange);
  return { kind: 'streamed' };
}

/** A list without `limit` and `continue` shares its pages with all requests for the same view. */
async function read({ exchange }: Call, page: Page, form: ObjectForm, ports: KubePorts): Promise<Read> {
  const { scope, selector, revision, isExact, after, limit } = page;
  const encoding = listEncoding(form);
  const end = { more: false, after };
  if (limit > 0 || after !== undefined) return { page, items: limited(exchange, page, encoding, ports, end), end };
  if (isExact) return { page, items: whileThere(exchange, ports.snapshots.chunks(scope, selector, revision, encoding)), end };
  const { revision: at, chunks } = await ports.snapshots.present(scope, selector, encoding);
  return { page: { ...page, revision: at }, items: whileThere(exchange, chunks), end };
}

/** The whole list as JSON text, piece by piece. The first piece begins with the opening. */
export async function* listBytes(
  items: AsyncIterable<Uint8Array>,
  { listOpening }: ObjectForm,
  metadata: () => unknown,
): AsyncGenerator<Uint8Array> {
  let isFirst = true;
  for await (const chunk of items) {
    // Every element has a comma in front; drop the very first comma.
    yield isFirst ? Buffer.concat([listOpening, chunk.subarray(1)]) : chunk;
    isFirst = false;
  }
  const closing = encode(`],"metadata":${JSON.stringify(await metadata())}}`);
  yield isFirst ? Buffer.concat([listOpening, closing]) : closing;
}

/** Joins pieces until each has at least `longBytesMin`; only the last may be shorter. */
async function* inLongPieces(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let held: Uint8Array | undefined;
  for await (const piece of pieces) {
    held = held === undefined ? piece : Buffer.concat([held, piece]);
    if (held.length < longBytesMin) continue;
    yield held;
    held = undefined;
  }
  if (held !== undefined) yield held;
}

/** Yields the pages that are not empty, until the exchange is over. */
async function* whileThere(exchange: Exchange, pages: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  for await (const page of pages) {
    if (exchange.isOver) return;
    if (page.length > 0) yield page;
  }
}

/** Items after `after`, until `limit` is reached or the exchange is over. Sets `end`. */
async function* limited(
  exchange: Exchange,
  page: Page,
  encoding: ListEncoding,
  { objects }: KubePorts,
  end: End,
): AsyncGenerator<Uint8Array> {
  const { selector, limit } = page;
  const snapshot = open(page, objects);
  let left = limit === 0 ? Infinity : limit;
  let after = page.after;
  try {
    do {
      await exchange.turn();
      if (exchange.isOver) return;
      const read = await snapshot.page(after);
      const selected = read.objects.filter((object) => isSelected(object, selector));
      const taken = selected.slice(0, left);
      if (taken.length > 0) {
        end.after = taken.at(-1)?.key;
        yield encoding.encode(taken);
      }
      left -= taken.length;
      if (taken.length < selected.length) {
        end.more = true;
        return;
      }
      after = read.next;
    } while (after !== undefined);
  } catch (error) {
    throw withFreshToken(error, page);
  } finally {
    snapshot.close();
  }
}

function open(page: Page, objects: Objects): Snapshot {
  try {
    return objects.snapshot(page.scope, page.revision);
  } catch (error) {
    throw withFreshToken(error, page);
  }
}

async function metadataOf(page: Page, end: End, { revisions, objects }: KubePorts): Promise<Record<string, unknown>> {
  const resourceVersion = revisions.format(page.revision);
  if (!end.more || end.after === undefined) return { resourceVersion };
  const token = formatContinue({ resourceVersion, after: end.after }, page.scope);
  if (!isEverything(page.selector)) return { resourceVersion, continue: token };
  const remaining = await objects.count(page.scope, end.after, remainingMax);
  return { resourceVersion, continue: token, ...(remaining === undefined || remaining === 0 ? {} : { remainingItemCount: remaining }) };
}

function pageOf(options: ListOptions, scope: Scope, selector: Selector, { revisions }: KubePorts): Page {
  const { limit, continueToken, resourceVersion, match } = options;
  const now = { scope, selector, limit, revision: revisions.published, isExact: false, after: undefined };
  if (continueToken !== undefined) {
    const { resourceVersion: begun, after } = mustParse(parseContinue(continueToken, scope));
    const located = begun === undefined ? undefined : revisions.locate(begun);
    if (located === undefined) return { ...now, after };
    if (located.kind === 'ours') return { ...now, revision: located.revision, after };
    throw withFreshToken(new Refused(expired('the continue token names a revision that is not of this store')), { ...now, after });
  }
  if (resourceVersion === '' || resourceVersion === '0') return now;
  const located = revisions.locate(resourceVersion);
  if (located.kind === 'above') throw new Refused(resourceVersionTooLarge(resourceVersion, revisions.format(revisions.published)));
  const isExact = match === 'Exact' || (match === undefined && limit > 0);
  if (!isExact) return now;
  if (located.kind === 'below') throw new Refused(expired(`too old resource version: ${resourceVersion} is not of this store`));
  return { ...now, revision: located.revision, isExact: true };
}

/**
 * If a list cannot continue at its first page's revision, the new token continues after the same
 * key at the newest state.
 */
function withFreshToken(error: unknown, { after, scope }: Page): unknown {
  if (!(error instanceof Refused) || error.refusal.reason !== 'Expired' || after === undefined) return error;
  return new Refused({ ...error.refusal, continue: formatContinue({ resourceVersion: undefined, after }, scope) });
}

async function* chain(opening: readonly Uint8Array[], bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  yield* opening;
  yield* bytes;
}

async function* oneByOne(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<readonly Uint8Array[]> {
  for await (const piece of pieces) yield [piece];
}
