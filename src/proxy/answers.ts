/** The proxy's own answers, in the words of kcp's front proxy. Pure. */
import { shown } from '../diagnostics/bounded-log.js';

export type OwnAnswer = Readonly<{ code: number; headers: Readonly<Record<string, string>>; body: string }>;

const nosniff = { 'x-content-type-options': 'nosniff' };
const unstored = { 'cache-control': 'no-cache, private' };
const retryAfterSeconds = 1;

/** Sent before authentication, so that nobody learns which workspaces exist. */
export function accessNotPermitted(method: string, path: string): OwnAnswer {
  return forbidden('', method, path, ': workspace access not permitted');
}

export function forbidden(user: string, method: string, path: string, why = ''): OwnAnswer {
  const message = `forbidden: User ${JSON.stringify(user)} cannot ${method.toLowerCase()} path ${JSON.stringify(path)}${why}`;
  return status(403, 'Forbidden', message, { headers: nosniff, details: {} });
}

/** kcp's shards give the same message. */
export function extraNotAllowed(key: string): OwnAnswer {
  const message = `forbidden: impersonating the extra key ${JSON.stringify(shown(key))} is not allowed for the requestor`;
  return status(403, 'Forbidden', message, { headers: nosniff, details: {} });
}

export const unauthorized: OwnAnswer = status(401, 'Unauthorized', 'Unauthorized', { headers: unstored });

/** A Workspace on the path is unavailable. */
export const notAvailable: OwnAnswer = text(503, 'Not available.\n');
export const pageNotFound: OwnAnswer = text(404, '404 page not found\n');
export const malformed: OwnAnswer = text(400, '400 Bad Request\n');
export const headersTooLong: OwnAnswer = text(431, '431 Request Header Fields Too Large\n');
export const expectationFailed: OwnAnswer = { code: 417, headers: {}, body: '' };

export const preflightAllowed: OwnAnswer = { code: 204, headers: {}, body: '' };

/**
 * The answer to an upgrade to another protocol than websocket, or to a websocket that fails
 * unexpectedly.
 */
export const badGateway: OwnAnswer = { code: 502, headers: {}, body: '' };

/** Nothing was sent to a backend, so the client may retry. */
export function notSent(message: string): OwnAnswer {
  return later(503, 'ServiceUnavailable', message);
}

export function outcomeUnknown(message: string): OwnAnswer {
  return status(502, 'InternalError', message, { headers: unstored });
}

export function overdue(message: string): OwnAnswer {
  return status(504, 'Timeout', message, { headers: unstored });
}

export function tooMany(message: string): OwnAnswer {
  return later(429, 'TooManyRequests', message);
}

export function redirect(location: string): OwnAnswer {
  const escaped = location
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&#34;')
    .replaceAll("'", '&#39;');
  const headers = { 'content-type': 'text/html; charset=utf-8', location };
  return { code: 307, headers, body: `<a href="${escaped}">Temporary Redirect</a>.\n\n` };
}

export function text(code: number, body: string): OwnAnswer {
  return { code, headers: { 'content-type': 'text/plain; charset=utf-8', ...nosniff }, body };
}

function later(code: number, reason: string, message: string): OwnAnswer {
  const headers = { ...unstored, 'retry-after': String(retryAfterSeconds) };
  return status(code, reason, message, { headers, details: { retryAfterSeconds } });
}

type Rest = Readonly<{ headers: Readonly<Record<string, string>>; details?: object }>;

function status(code: number, reason: string, message: string, { headers, details }: Rest): OwnAnswer {
  const body = {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message,
    reason,
    ...(details !== undefined && { details }),
    code,
  };
  return { code, headers: { 'content-type': 'application/json', ...headers }, body: `${JSON.stringify(body)}\n` };
}
