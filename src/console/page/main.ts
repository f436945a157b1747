/**
 * The console: requests an overview every second while the page is visible, draws its state, and
 * follows the address.
 *
 *   address, answers ─▶ state.ts ─▶ views ─▶ lit-html changes what differs
 *
 * The interval grows with the response time, to bound the console's load on the cache.
 */
import { html, nothing, render, type TemplateResult } from 'lit-html';
import { fetchObject, fetchOverview, fetchPage } from './requests.js';
import { Charts } from './charts.js';
import { objectsView } from './objects-view.js';
import type { TypeView } from './overview.js';
import { overviewView } from './overview-view.js';
import { allObjects, formatRoute, parseRoute, type ObjectsRoute } from './route.js';
import { after, begin, isSameList, typeName, typeOf, typesListed, type Event, type State } from './state.js';

const everyMs = 1_000;
const timesWhatItTook = 10;

let state = begin(parseRoute(location.hash));
let charts: Charts | undefined;
/** Cancels the requests for the list; `showing` cancels the request for the open object. */
let listing = new AbortController();
let showing = new AbortController();

function happen(event: Event): void {
  state = after(state, event);
  draw();
}

function draw(): void {
  render(page(state), document.body);
  const { route, overview } = state;
  const container = document.querySelector('#charts');
  if (container === null || overview === undefined || route.kind !== 'overview') return;
  charts ??= new Charts();
  if (charts.element.parentElement !== container) container.append(charts.element);
  charts.show(overview.activity);
}

function page({ route, overview, failure }: State): TemplateResult {
  const at = (kind: typeof route.kind): 'page' | 'false' => (route.kind === kind ? 'page' : 'false');
  return html`
    <header class="top">
      <h1>Strata</h1>
      ${overview === undefined ? nothing : cacheLine(overview.cache)}
      <nav>
        <a href="#/" aria-current=${at('overview')}>Overview</a>
        <a href=${formatRoute(allObjects)} aria-current=${at('objects')}>Objects</a>
      </nav>
    </header>
    <main>
      ${failure === undefined ? nothing : html`<p class="notice" role="alert">${failure}${overview === undefined ? '' : '; this is what it said last'}</p>`}
      ${
        overview === undefined
          ? html`<p class="empty">loading…</p>`
          : route.kind === 'overview'
            ? overviewView(overview)
            : objectsView(state, route, overview, { go, more })
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

function go(route: ObjectsRoute): void {
  location.hash = formatRoute(route);
}

function arrive(): void {
  const route = parseRoute(location.hash);
  const before = state.route;
  happen({ kind: 'went', route });
  if (route.kind === 'overview') return;
  if (!isSameList(before, route)) more();
  show(route);
}

function more(): void {
  const { route, list } = state;
  if (route.kind === 'overview') return;
  listing.abort();
  const types = typesListed(state, route);
  if (types.length === 0) return;
  listing = new AbortController();
  const { signal } = listing;
  happen({ kind: 'listing' });
  void askPages(types, { route, after: list.pages.at(-1)?.continueWith ?? '', signal });
}

async function askPages(
  types: readonly TypeView[],
  { route, after: token, signal }: Readonly<{ route: ObjectsRoute; after: string; signal: AbortSignal }>,
): Promise<void> {
  try {
    for (const [at, type] of types.entries()) {
      const answer = await fetchPage({ ...route, type }, token, signal);
      happen({ kind: 'page', page: { ...answer, type: typeName(type) }, isLast: at === types.length - 1 });
    }
  } catch (error) {
    if (!signal.aborted) happen({ kind: 'unlisted', why: messageOf(error) });
  }
}

function show(route: ObjectsRoute): void {
  showing.abort();
  const type = typeOf(state, route);
  if (route.open === undefined || type === undefined) return;
  showing = new AbortController();
  const { signal } = showing;
  fetchObject(type, route.open, signal).then(
    (text) => void (signal.aborted || happen({ kind: 'object', text })),
    (error: unknown) => void (signal.aborted || happen({ kind: 'unshown', why: messageOf(error) })),
  );
}

async function ask(): Promise<void> {
  const startedMs = performance.now();
  const isFirst = state.overview === undefined;
  if (document.visibilityState === 'visible') {
    try {
      happen({ kind: 'overview', overview: await fetchOverview() });
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
  if (state.route.kind === 'overview') return;
  more();
  show(state.route);
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** '/' focuses the name field, Escape closes the object. */
function press(event: KeyboardEvent): void {
  const { route } = state;
  if (route.kind === 'overview' || event.ctrlKey || event.metaKey || event.altKey) return;
  const isTyping = event.target instanceof HTMLInputElement;
  if (event.key === 'Escape' && route.open !== undefined) go({ ...route, open: undefined });
  if (event.key !== '/' || isTyping) return;
  event.preventDefault();
  document.querySelector<HTMLInputElement>('#name')?.focus();
}

// Drop the query string of a redirect by the cache.
if (location.search !== '') history.replaceState(null, '', location.pathname + location.hash);
addEventListener('hashchange', arrive);
addEventListener('keydown', press);
draw();
void ask();
