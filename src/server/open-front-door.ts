/**
 * Opens the front door over the store of a cache. Reads the mapping file and the certificates shown
 * to backends, and answers health and metrics.
 */
import type { IncomingMessage } from 'node:http';
import { isDeepStrictEqual } from 'node:util';
import { readAuthorities, readPair } from '../certificates/pair-files.js';
import { readCheckedFile } from '../config/files/checked-file.js';
import type { proxyOptions } from '../config/options/command-options.js';
import type { CommandValues } from '../config/command-line/command-values.js';
import { healthQueryOf, type Health, type HealthEndpoint } from '../diagnostics/health.js';
import { BoundedLog } from '../diagnostics/bounded-log.js';
import type { Log } from '../diagnostics/log.js';
import { frontDoorMetricTable } from '../diagnostics/metric-table.js';
import type { Metrics } from '../diagnostics/metrics.js';
import { anonymous, isMaster, mayReadMetrics } from '../domain/caller.js';
import { workspaceEntries } from '../domain/path-entry.js';
import type { Clock, Freshness, Paths } from '../domain/ports.js';
import type { Store } from '../domain/store-port.js';
import type { Exchange } from '../http/exchange.js';
import { impersonationRefused } from '../http/impersonation.js';
import type { Upgrade } from '../http/connection.js';
import type { BackendCredentials } from '../proxy/backend-requests.js';
import { openTokens } from './open-tokens.js';
import { Authenticator } from '../proxy/authenticator.js';
import { Backends } from '../proxy/backends.js';
import { forbidden, text, unauthorized, type OwnAnswer } from '../proxy/answers.js';
import { DoorMetrics } from '../proxy/door-metrics.js';
import { Destinations } from '../proxy/destinations.js';
import { FrontDoor } from '../proxy/front-door.js';
import { LongRunningRequests } from '../proxy/long-running-requests.js';
import { parseMappings, type Mapping } from '../proxy/mapping.js';
import { Websockets } from '../proxy/websockets.js';

export type FrontDoorSettings = CommandValues<typeof proxyOptions>;

type Parts = Readonly<{ store: Pick<Store, 'objects' | 'revisions'>; paths: Paths; freshness: Pick<Freshness, 'report'> }> &
  Readonly<{ health: Health; metrics: Metrics; clock: Clock; log: Log }>;

const endpointPattern = /^\/(readyz|livez)(?:\/([^/]+))?$/;

/**
 * `filesPollMs`: the maximum age of a certificate that was read from its file. Throws SettingsError
 * for an unusable mapping file, CacheError for an unusable certificate.
 */
export async function openFrontDoor(
  settings: FrontDoorSettings,
  parts: Parts,
  {
    filesPollMs,
    requestTimeoutMs,
    publicPaths,
  }: Readonly<{ filesPollMs: number; requestTimeoutMs: number; publicPaths: readonly string[] }>,
) {
  const mappings = readMappings(settings.mappingFile);
  const backends = new Backends(parts);
  const shown = new ShownCertificates(parts, { filesPollMs });
  for (const mapping of mappings) shown.of(mapping);
  // Bounded, because a backend may cause any number of failures.
  const failures = new BoundedLog(parts);
  const groups = { passed: settings.passedGroups, dropped: settings.droppedGroups };
  const refusals = new BoundedLog(parts);
  const refused = ({ message }: Error): void => refusals.warn('token.refused', { reason: message });
  const common = {
    authenticator: new Authenticator({ groups, tokens: await openTokens(settings, parts), refused }),
    destinations: new Destinations({ paths: parts.paths, objects: parts.store.objects, revisions: parts.store.revisions }, mappings),
    backends,
    credentials: (mapping: Mapping) => shown.of(mapping),
    lasting: new LongRunningRequests(),
    metrics: openMetrics(parts),
    failed: (error: unknown, { method }: IncomingMessage) => failures.warn('request.failed', { method, error }),
  };
  const local = (path: string, exchange: Exchange): Promise<OwnAnswer> => answerHere(path, exchange, { ...parts, publicPaths });
  const door = new FrontDoor({ ...common, local }, { corsOrigins: settings.corsOrigins, requestTimeoutMs });
  const websockets = new Websockets({ ...common, clock: parts.clock });
  return {
    handle: (exchange: Exchange, refusal: Error | undefined): void => void door.handle(exchange, refusal),
    upgrade: (upgrade: Upgrade): void => void websockets.handle(upgrade),
    endLasting: (): void => common.lasting.endAll(),
    close: (): void => backends.close(),
  };
}

function readMappings(file: string): readonly Mapping[] {
  return readCheckedFile(file, (value) => {
    const parsed = parseMappings(value);
    return parsed.kind === 'parsed' ? { value: parsed.mappings, problems: [] } : { value: [], problems: parsed.problems };
  });
}

/**
 * The certificates that backends are shown, read again at intervals. A pair that cannot be used is
 * logged, and the previous pair stays in use.
 */
class ShownCertificates {
  readonly #parts: Pick<Parts, 'clock' | 'log'>;
  readonly #filesPollMs: number;
  readonly #read = new Map<Mapping, { credentials: BackendCredentials; atMs: number }>();

  constructor(parts: Pick<Parts, 'clock' | 'log'>, { filesPollMs }: Readonly<{ filesPollMs: number }>) {
    this.#parts = parts;
    this.#filesPollMs = filesPollMs;
  }

  of(mapping: Mapping): BackendCredentials {
    const { clock, log } = this.#parts;
    const known = this.#read.get(mapping);
    const nowMs = clock.now();
    if (known !== undefined && nowMs - known.atMs < this.#filesPollMs) return known.credentials;
    const { caFile, certFile, keyFile } = mapping;
    try {
      const read = { ca: readAuthorities(caFile, 'CA of the backend'), ...readPair({ certFile, keyFile }) };
      const credentials = isDeepStrictEqual(read, known?.credentials) && known !== undefined ? known.credentials : read;
      this.#read.set(mapping, { credentials, atMs: nowMs });
      return credentials;
    } catch (error) {
      if (known === undefined) throw error;
      log.warn('backend.certificate.unusable', { path: mapping.path, error });
      known.atMs = nowMs;
      return known.credentials;
    }
  }
}

function openMetrics({ metrics, freshness }: Parts): DoorMetrics {
  const instruments = metrics.also(frontDoorMetricTable);
  const doorMetrics = new DoorMetrics(instruments);
  const { group, resource } = workspaceEntries;
  metrics.beforeRender(async () => {
    const { shards } = await freshness.report();
    instruments.indexedClusters.reset();
    for (const { shard, slices } of shards) {
      const workspaces = slices.find((slice) => slice.group === group && slice.resource === resource);
      if (workspaces !== undefined) instruments.indexedClusters.set(workspaces.objects, { shard });
    }
    doorMetrics.keepOnly(new Set(shards.flatMap(({ shard, removed }) => (removed ? [] : [shard]))));
  });
  return doorMetrics;
}

type AnsweredHere = Pick<Parts, 'health' | 'metrics'> & Readonly<{ publicPaths: readonly string[] }>;

async function answerHere(path: string, exchange: Exchange, { health, metrics, publicPaths }: AnsweredHere): Promise<OwnAnswer> {
  const { request, caller } = exchange;
  const [, endpoint, check] = endpointPattern.exec(path) ?? [];
  if (endpoint !== undefined) {
    const { verbose, excluded } = healthQueryOf(new URLSearchParams((request.url ?? '').slice(path.length + 1)));
    const report = health.report(endpoint as HealthEndpoint, { verbose: verbose && check === undefined, excluded });
    return text(report.status, report.text);
  }
  const isRead = request.method === 'GET' || request.method === 'HEAD';
  const isOpen = isRead && publicPaths.includes(path);
  if (caller === anonymous && !isOpen) return unauthorized;
  const refused = impersonationRefused(request);
  if (refused !== undefined) return forbidden(caller.user, request.method ?? 'GET', path, `: ${refused.message}`);
  if (!isOpen && !(isRead ? mayReadMetrics(caller) : isMaster(caller))) return forbidden(caller.user, request.method ?? 'GET', path);
  return { code: 200, headers: { 'content-type': metrics.contentType }, body: await metrics.render() };
}
