/** The state of the page and its reducer. Pure: main.ts sends requests and draws. */
import type { Page } from './requests.js';
import type { Overview, TypeView } from './overview.js';
import type { ObjectsRoute, Route } from './route.js';

export type State = Readonly<{
  route: Route;
  overview: Overview | undefined;
  /** Why the last request to the cache failed; undefined if it succeeded. */
  failure: string | undefined;
  list: List;
  object: Shown;
}>;

export type List = Readonly<{ pages: readonly PageOfType[]; isAsking: boolean; failure: string | undefined }>;
export type PageOfType = Page & Readonly<{ type: string }>;
export type Shown = Readonly<{ text: string | undefined; failure: string | undefined }>;

export type Event =
  | Readonly<{ kind: 'went'; route: Route }>
  | Readonly<{ kind: 'overview'; overview: Overview }>
  | Readonly<{ kind: 'unanswered'; why: string }>
  | Readonly<{ kind: 'listing' }>
  /** `isLast`: no further page is under way. */
  | Readonly<{ kind: 'page'; page: PageOfType; isLast: boolean }>
  | Readonly<{ kind: 'unlisted'; why: string }>
  | Readonly<{ kind: 'object'; text: string }>
  | Readonly<{ kind: 'unshown'; why: string }>;

const noList: List = { pages: [], isAsking: false, failure: undefined };
const nothingShown: Shown = { text: undefined, failure: undefined };

export function begin(route: Route): State {
  return { route, overview: undefined, failure: undefined, list: noList, object: nothingShown };
}

export function after(state: State, event: Event): State {
  switch (event.kind) {
    case 'went': {
      const kept = isSameList(state.route, event.route) ? state.list : noList;
      return { ...state, route: event.route, list: kept, object: nothingShown };
    }
    case 'overview':
      return { ...state, overview: event.overview, failure: undefined };
    case 'unanswered':
      return { ...state, failure: event.why };
    case 'listing':
      return { ...state, list: { ...state.list, isAsking: true, failure: undefined } };
    case 'page':
      return { ...state, list: { pages: [...state.list.pages, event.page], isAsking: !event.isLast, failure: undefined } };
    case 'unlisted':
      return { ...state, list: { ...state.list, isAsking: false, failure: event.why } };
    case 'object':
      return { ...state, object: { text: event.text, failure: undefined } };
    case 'unshown':
      return { ...state, object: { text: undefined, failure: event.why } };
  }
}

/** Whether both routes list the same objects. The open object may differ. */
export function isSameList(one: Route, other: Route): boolean {
  if (one.kind === 'overview' || other.kind === 'overview') return false;
  return (['type', 'shard', 'cluster', 'name'] as const).every((member) => one[member] === other[member]);
}

/** The chosen type. Undefined before the first overview, or if no type has that name. */
export function typeOf({ overview }: State, { type }: ObjectsRoute): TypeView | undefined {
  return overview?.types.find((one) => typeName(one) === type);
}

/**
 * The types to list: the chosen one. If a name is given without a type, every type that has
 * objects.
 */
export function typesListed(state: State, route: ObjectsRoute): readonly TypeView[] {
  const type = typeOf(state, route);
  if (type !== undefined) return [type];
  return route.type === '' && route.name !== '' ? (state.overview?.types.filter(({ objects }) => objects > 0) ?? []) : [];
}

export function typeName({ group, resource, identity }: TypeView): string {
  return `${resource}${group === '' ? '' : `.${group}`}${identity === '' ? '' : `:${identity}`}`;
}
