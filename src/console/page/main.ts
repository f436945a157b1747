/**
 * The console: asks for an overview every second while the page is visible, draws its state, and
 * follows the address.
 *
 *   address, answers ─▶ state.ts ─▶ views ─▶ lit-html changes what differs
 *
 * The interval grows with the response time, to bound the console's load on the cache.
 */
import { html, nothing, render, type TemplateResult } from 'lit-html';
import { askObject, askOverview, askPage } from './ask.js';
import { Charts } from './charts.js';
import { objectsView } from './objects-view.js';
import type { TypeView } from './overview.js';
import { overviewView } from './overview-view.js';
import { allObjects, formatPlace, parsePlace, type ObjectsPlace } from './place.js';
import { after, begin, isSameList, typeName, typeOf, typesListed, type Event, type State } from './state.js';

const everyMs = 1_000;
const timesWhatItTook = 10;

let state = begin(parsePlace(location.hash));
let charts: Charts | undefined;
/** Cancels the requests of the list; `showing` cancels that of the open object. */
let listing = new AbortController();
let showing = new AbortController();

function happen(event: Event): void {
  state = after(state, event);
  draw();
}

function draw(): void {
  render(page(state), document.body);
  const { place, overview } = state;
  const room = document.querySelector('#charts');
  if (room === null || overview === undefined || place.kind !== 'overview') return;
  charts ??= new Charts();
  if (charts.element.parentElement !== room) room.append(charts.element);
  charts.show(overview.activity);
}

function page({ place, overview, failure }: State): TemplateResult {
  const at = (kind: typeof place.kind): 'page' | 'false' => (place.kind === kind ? 'page' : 'false');
  return html`
    <header class="top">
      <h1>Strata</h1>
      ${overview === undefined ? nothing : cacheLine(overview.cache)}
      <nav>
        <a href="#/" aria-current=${at('overview')}>Overview</a>
        <a href=${formatPlace(allObjects)} aria-current=${at('objects')}>Objects</a>
      </nav>
    </header>
    <main>
      ${failure === undefined ? nothing : html`<p class="notice" role="alert">${failure}${overview === undefined ? '' : '; this is what it said last'}</p>`}
      ${
        overview === undefined
          ? html`<p class="empty">asking…</p>`
          : place.kind === 'overview'
            ? overviewView(overview)
            : objectsView(state, place, overview, { go, more })
      }
    </main>
  `;
}

function cacheLine({ id, version, ready, resourceVersion }: NonNullable<State['overview']>['cache']): TemplateResult {
  return html`<p>
    <span class="badge ${ready ? 'fresh' : 'away'}">${ready ? 'ready' : 'not ready'}</span> ${id}
    <small>${version}, at ${resourceVersion}</small>
  </p>`;
}

function go(place: ObjectsPlace): void {
  location.hash = formatPlace(place);
}

function arrive(): void {
  const place = parsePlace(location.hash);
  const before = state.place;
  happen({ kind: 'went', place });
  if (place.kind === 'overview') return;
  if (!isSameList(before, place)) more();
  show(place);
}

function more(): void {
  const { place, list } = state;
  if (place.kind === 'overview') return;
  listing.abort();
  const types = typesListed(state, place);
  if (types.length === 0) return;
  listing = new AbortController();
  const { signal } = listing;
  happen({ kind: 'listing' });
  void askPages(types, { place, after: list.pages.at(-1)?.continueWith ?? '', signal });
}

async function askPages(
  types: readonly TypeView[],
  { place, after: token, signal }: Readonly<{ place: ObjectsPlace; after: string; signal: AbortSignal }>,
): Promise<void> {
  try {
    for (const [at, type] of types.entries()) {
      const answer = await askPage({ ...place, type }, token, signal);
      happen({ kind: 'page', page: { ...answer, type: typeName(type) }, isLast: at === types.length - 1 });
    }
  } catch (error) {
    if (!signal.aborted) happen({ kind: 'unlisted', why: messageOf(error) });
  }
}

function show(place: ObjectsPlace): void {
  showing.abort();
  const type = typeOf(state, place);
  if (place.open === undefined || type === undefined) return;
  showing = new AbortController();
  const { signal } = showing;
  askObject(type, place.open, signal).then(
    (text) => void (signal.aborted || happen({ kind: 'object', text })),
    (error: unknown) => void (signal.aborted || happen({ kind: 'unshown', why: messageOf(error) })),
  );
}

async function ask(): Promise<void> {
  const startedMs = performance.now();
  const isFirst = state.overview === undefined;
  if (document.visibilityState === 'visible') {
    try {
      happen({ kind: 'overview', overview: await askOverview() });
      // Types are unknown until the first overview, so resolve the address again.
      if (isFirst) arriveFirst();
    } catch (error) {
      happen({ kind: 'unanswered', why: messageOf(error) });
    }
  }
  const tookMs = performance.now() - startedMs;
  setTimeout(() => void ask(), Math.max(everyMs, tookMs * timesWhatItTook));
}

function arriveFirst(): void {
  if (state.place.kind === 'overview') return;
  more();
  show(state.place);
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** '/' focuses the name field, Escape closes the object. */
function press(event: KeyboardEvent): void {
  const { place } = state;
  if (place.kind === 'overview' || event.ctrlKey || event.metaKey || event.altKey) return;
  const isTyping = event.target instanceof HTMLInputElement;
  if (event.key === 'Escape' && place.open !== undefined) go({ ...place, open: undefined });
  if (event.key !== '/' || isTyping) return;
  event.preventDefault();
  document.querySelector<HTMLInputElement>('#name')?.focus();
}

// Drop a query string that a redirect of the cache has left.
if (location.search !== '') history.replaceState(null, '', location.pathname + location.hash);
addEventListener('hashchange', arrive);
addEventListener('keydown', press);
draw();
void ask();
