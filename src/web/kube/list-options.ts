/**
 * The options of lists and watches, parsed and checked as Kubernetes does. A refusal with 422 names
 * every wrong option.
 */
import { badRequest, invalid, Refused, type Cause, type Refusal } from '../../domain/errors.js';
import { attempt, mustParse, type Parsed } from '../../domain/parsed.js';
import { parseFieldSelector, parseLabelSelector, type Selector } from '../../domain/syntax/selector.js';
import { isTrue } from './kube-request.js';

export type ResourceVersionMatch = 'Exact' | 'NotOlderThan';

export type ListOptions = Readonly<{
  selector: Selector;
  /** 0: no limit. */
  limit: number;
  continueToken: string | undefined;
  /** '' if not given; otherwise digits. */
  resourceVersion: string;
  match: ResourceVersionMatch | undefined;
}>;

export type WatchOptions = Readonly<{
  selector: Selector;
  resourceVersion: string;
  sendInitialEvents: boolean | undefined;
  bookmarks: boolean;
  /** Undefined if the server chooses. */
  timeoutSeconds: number | undefined;
}>;

const matches: readonly string[] = ['Exact', 'NotOlderThan'];
const digits = /^\d+$/;
const uint64Max = 18_446_744_073_709_551_615n;

/** `selectorBytesMax`: for each of the two selectors of a request. */
export type SelectorLimits = Readonly<{ selectorBytesMax: number }>;

/** The bytes of a request's selectors, which count against the caller's bound for watches. */
export function selectorBytes(query: URLSearchParams): number {
  return Buffer.byteLength(query.get('labelSelector') ?? '') + Buffer.byteLength(query.get('fieldSelector') ?? '');
}

export function parseListOptions(query: URLSearchParams, limits: SelectorLimits): Parsed<ListOptions> {
  return attempt(() => {
    const selector = parseSelector(query, limits);
    const limit = integerIn(query, 'limit');
    integerIn(query, 'timeoutSeconds');
    const { resourceVersion, match, continueToken } = texts(query);
    refuse(listCauses(query));
    if (continueToken !== undefined && resourceVersion !== '' && resourceVersion !== '0') {
      throw new Refused(badRequest('specifying resource version is not allowed when using continue'));
    }
    return {
      selector,
      limit: Math.max(0, limit),
      continueToken,
      resourceVersion: parseResourceVersion(resourceVersion),
      match: match as ResourceVersionMatch | undefined,
    };
  });
}

export function parseWatchOptions(query: URLSearchParams, limits: SelectorLimits): Parsed<WatchOptions> {
  return attempt(() => {
    const selector = parseSelector(query, limits);
    const { resourceVersion } = texts(query);
    refuse(watchCauses(query));
    const timeoutSeconds = integerIn(query, 'timeoutSeconds');
    integerIn(query, 'limit');
    return {
      selector,
      resourceVersion: parseResourceVersion(resourceVersion),
      sendInitialEvents: query.has('sendInitialEvents') ? isTrue(query.get('sendInitialEvents')) : undefined,
      bookmarks: isTrue(query.get('allowWatchBookmarks')),
      timeoutSeconds: timeoutSeconds > 0 ? timeoutSeconds : undefined,
    };
  });
}

/** Returns a decimal without leading zeros that fits 64 bits, "0", or ''. */
export function parseResourceVersion(text: string): string {
  if (text === '') return '';
  const shown = JSON.stringify(text);
  const refuse = (why: string): Refused =>
    new Refused(
      badRequest(`invalid resource version: resourceVersion: Invalid value: ${shown}: strconv.ParseUint: parsing ${shown}: ${why}`),
    );
  if (!digits.test(text)) throw refuse('invalid syntax');
  const value = text.length > 20 ? uint64Max + 1n : BigInt(text);
  if (value > uint64Max) throw refuse('value out of range');
  return value.toString();
}

function texts(query: URLSearchParams): { resourceVersion: string; match: string | undefined; continueToken: string | undefined } {
  return {
    resourceVersion: query.get('resourceVersion') ?? '',
    match: query.get('resourceVersionMatch') || undefined,
    continueToken: query.get('continue') || undefined,
  };
}

function parseSelector(query: URLSearchParams, limits: SelectorLimits): Selector {
  return {
    labels: mustParse(parseLabelSelector(selectorText(query, 'labelSelector', limits))),
    fields: mustParse(parseFieldSelector(selectorText(query, 'fieldSelector', limits))),
  };
}

/**
 * The text is bounded, because every open watch keeps its selector and applies it to every change.
 */
function selectorText(query: URLSearchParams, parameter: string, { selectorBytesMax }: SelectorLimits): string {
  const text = query.get(parameter) ?? '';
  const bytes = Buffer.byteLength(text);
  if (bytes <= selectorBytesMax) return text;
  throw new Refused(badRequest(`${parameter}: Too long: it has ${bytes} bytes and may not be more than ${selectorBytesMax}`));
}

/** 0 if absent. */
function integerIn(query: URLSearchParams, name: string): number {
  const text = query.get(name);
  return text === null ? 0 : parseInteger(text);
}

/**
 * Parses an int64. A number too large for a double loses its last digits, which makes no difference
 * for a count. Throws Refused(400).
 */
export function parseInteger(text: string): number {
  const refuse = (why: string): Refused => new Refused(badRequest(`strconv.ParseInt: parsing ${JSON.stringify(text)}: ${why}`));
  if (!/^[+-]?\d+$/.test(text)) throw refuse('invalid syntax');
  if (BigInt.asIntN(64, BigInt(text.replace('+', ''))) !== BigInt(text.replace('+', ''))) throw refuse('value out of range');
  return Number(text);
}

function listCauses(query: URLSearchParams): readonly Cause[] {
  const { resourceVersion, match, continueToken } = texts(query);
  const causes: Cause[] = [];
  if (match !== undefined) {
    if (resourceVersion === '') causes.push(forbidden('resourceVersionMatch is forbidden unless resourceVersion is provided'));
    if (continueToken !== undefined) causes.push(forbidden('resourceVersionMatch is forbidden when continue is provided'));
    if (!matches.includes(match)) causes.push(notSupported('resourceVersionMatch', match, '"Exact", "NotOlderThan", ""'));
    if (match === 'Exact' && resourceVersion === '0')
      causes.push(forbidden('resourceVersionMatch "exact" is forbidden for resourceVersion "0"'));
  }
  if (query.has('sendInitialEvents')) causes.push(forbidden('sendInitialEvents is forbidden for list', 'sendInitialEvents'));
  return causes;
}

function watchCauses(query: URLSearchParams): readonly Cause[] {
  const { match, continueToken } = texts(query);
  const causes: Cause[] = [];
  if (query.has('sendInitialEvents') && match !== 'NotOlderThan') {
    causes.push(forbidden('sendInitialEvents requires setting resourceVersionMatch to NotOlderThan'));
  }
  if (match !== undefined) {
    if (!query.has('sendInitialEvents'))
      causes.push(forbidden('resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided'));
    if (match !== 'NotOlderThan') causes.push(notSupported('resourceVersionMatch', match, '"NotOlderThan"'));
  }
  // Kubernetes ignores `continue` if a resourceVersion is given. If none is given, Kubernetes has
  // filled in NotOlderThan by this point.
  if (continueToken !== undefined) causes.push(forbidden('resourceVersionMatch is forbidden when continue is provided'));
  return causes;
}

export function forbidden(what: string, field = 'resourceVersionMatch'): Cause {
  return { reason: 'FieldValueForbidden', message: `Forbidden: ${what}`, field };
}

export function notSupported(field: string, value: string, supported: string): Cause {
  return {
    reason: 'FieldValueNotSupported',
    message: `Unsupported value: ${JSON.stringify(value)}: supported values: ${supported}`,
    field,
  };
}

function refuse(causes: readonly Cause[]): void {
  if (causes.length > 0) throw new Refused(invalidOptions('ListOptions', causes));
}

export function invalidOptions(kind: string, causes: readonly Cause[]): Refusal {
  return invalid({ group: 'meta.k8s.io', kind, name: '' }, causes);
}
