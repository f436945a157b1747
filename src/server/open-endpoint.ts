/** Opens the endpoint for pushers and child caches, with the limits for both. */
import type { Duplex } from 'node:stream';
import type { Settings } from '../config/settings.js';
import type { Log } from '../diagnostics/log.js';
import type { Metrics } from '../diagnostics/metrics.js';
import type { Catalogue } from '../domain/catalogue/catalogue.js';
import type { Refusal } from '../domain/errors.js';
import { addedMax } from '../domain/kept-names.js';
import type { Clock } from '../domain/ports.js';
import type { Store } from '../domain/store-port.js';
import type { Resource } from '../domain/resource.js';
import type { ShardName } from '../domain/shard.js';
import { refuseUpgrade, SocketAcceptor } from '../frames/accept-socket.js';
import { Turns } from '../http/turns.js';
import { Endpoint, type EndpointParts } from '../intake/push/endpoint.js';
import type { HeldRemovals } from '../intake/shards/held-removals.js';
import type { PushSessions } from '../intake/push/push-sessions.js';
import type { IntakeRules } from '../intake/push/receiver-state.js';
import type { Standbys } from '../intake/push/standbys.js';
import type { Tree } from '../tree/tree.js';
import { failure } from '../web/formats/status.js';

/**
 * Bytes sent to a pusher or child that it has not read yet. Above `bufferedBytesLow` the endpoint
 * waits before it reads from the peer or sends to it. Above `bufferedBytesMax`, a few of the
 * largest frames, it cuts the peer off.
 */
const bufferedBytesLow = 64 * 1024;
const bufferedBytesMax = 16 * 1024 * 1024;
/** How long a pusher or child may take to close its side. */
const closeGraceMs = 2_000;
export function openEndpoint(
  settings: Settings,
  parts: Readonly<{
    store: Store;
    sessions: PushSessions;
    standbys: Standbys;
    removals: HeldRemovals;
    rules: IntakeRules;
    tree: Tree;
    clock: Clock;
    log: Log;
    metrics: Metrics;
  }>,
): Endpoint {
  const { clock, tree } = parts;
  const turns = new Turns();
  const turn = (peer: string): Promise<void> => turns.turn(peer);
  const acceptor = new SocketAcceptor({ clock, turn }, { ...settings, bufferedBytesLow, bufferedBytesMax, closeGraceMs });
  const refuse = (socket: Duplex, refusal: Refusal): void => {
    const { code, text, retryAfterSeconds } = failure(refusal);
    refuseUpgrade(socket, code, text, retryAfterSeconds === undefined ? {} : { 'retry-after': String(retryAfterSeconds) });
  };
  const accept: EndpointParts['accept'] = (request, socket, head) => acceptor.accept(request, socket, head);
  return new Endpoint(
    { ...parts, turn, accept, refuse, acceptCache: (connection, greeting) => tree.accept(connection, greeting) },
    {
      pushersMax: settings.pushSessionsMax,
      childrenMax: settings.linkChildrenMax,
      sessionsPerCallerMax: settings.pushSessionsPerCallerMax,
      helloTimeoutMs: settings.helloTimeoutMs,
    },
  );
}

export function intakeRules(settings: Settings, catalogue: Catalogue): IntakeRules {
  const { frameBytesMax, frameMutationsMax, bodyBytesMax } = settings;
  return {
    typeOf: (resource: Resource, shard: ShardName) => catalogue.find(resource, shard),
    limits: { frameBytesMax, frameMutationsMax, bodyBytesMax },
    credit: { mutations: settings.pushMutationsMax, bytes: settings.pushBytesMax },
    systemClusters: new Set(settings.systemClusters),
  };
}

/** Accepts larger objects than from shards, because another cache may have added to them. */
export function linkRules({ limits, ...rules }: IntakeRules): IntakeRules {
  return { ...rules, limits: { ...limits, bodyBytesMax: limits.bodyBytesMax + addedMax.bytes } };
}
