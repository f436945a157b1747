/**
 * A kcp shard for tests, in this process. It serves list and watch over HTTPS as kcp does, of the
 * objects that a test puts into it. A test can also make it fail as real shards do: connections
 * that break in the middle of an object, compaction, missing types, a refused WatchList, an end and
 * a new start on the same port.
 *
 *   const shard = await ShardStandIn.start();        t.teardown(() => shard.close());
 *   shard.store.put('apiexports.apis.kcp.io', 'root', { metadata: { name: 'a' } });
 *   shard.cut();  shard.store.compact();  await shard.stop();  await shard.restart();
 *   shard.accepts = ({ user }) => user === 'agent';  shard.present(anotherServingPair);
 */
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import {
  constants,
  createSecureServer,
  type Http2SecureServer,
  type Http2ServerRequest,
  type Http2ServerResponse,
  type ServerHttp2Session,
} from 'node:http2';
import { createServer, type Server } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { tmpdir } from 'node:os';
import type { TLSSocket } from 'node:tls';
import { join } from 'node:path';
import { kcpTypes } from '../../src/domain/catalogue/catalogue-kcp.js';
import { replicatedTypes } from '../../src/shard/selection.js';
import type { KubeAccess } from '../../src/kube/kube-access.js';
import type { KubeObject } from './kube-client.js';
import { seenFrom, ShardStandInStore, type StandInScope, type StandInType } from './shard-stand-in-store.js';
import { selfSigned } from './test-authority.js';

type Members = Readonly<Record<string, unknown>>;

const token = 'stand-in-token';
/**
 * A shard in Go writes no more than its clients read. Node's server keeps what they do not read,
 * and refuses requests when it keeps more than this.
 */
const unreadMegabytesMax = 1_000;

/**
 * `http`: the only version that it speaks. `streamsMax`: how many requests one connection may have;
 * kcp allows 100.
 */
export type StandInOptions = Readonly<{ http?: 1 | 2; streamsMax?: number }>;

/** `user`: the common name of the client certificate of the connection; '' without one. */
export type Caller = Readonly<{ authorization: string; user: string; userAgent: string }>;

export class ShardStandIn {
  /** The bearer token whose holders may read. */
  static readonly token = token;
  readonly store = new ShardStandInStore();
  /** Whether it refuses WatchList, as an API server without that feature does. */
  refusesWatchList = false;
  /** Plurals of the types that nobody may read. */
  readonly forbidden = new Set<string>();
  /** Answers requests in the stand-in's place; returns true for those that it answers. */
  instead: (asked: URL, answer: ServerResponse) => boolean = () => false;
  /** The requested paths with their queries, in order of arrival. */
  readonly requests: string[] = [];
  readonly callers: Caller[] = [];
  /** Whether a caller may read; others get 401. */
  accepts = ({ authorization }: Caller): boolean => authorization === `Bearer ${token}`;
  /** The path of a kubeconfig for this shard. */
  readonly kubeconfig: string;
  readonly #folder: string;
  /** Its serving certificate, which is also the CA that clients trust. */
  certificate: Readonly<{ cert: string; key: string }>;
  readonly #sockets = new Set<Socket>();
  readonly #watches = new Set<Readonly<{ type: StandInType; write: (event: unknown) => void }>>();
  readonly #sessions = new Set<ServerHttp2Session>();
  readonly #server: Server | Http2SecureServer;
  #isStopped = false;
  #bytesUntilCut: number | undefined;

  private constructor(
    folder: string,
    certificate: Readonly<{ cert: string; key: string }>,
    { http = 2, streamsMax = 100 }: StandInOptions,
  ) {
    this.#folder = folder;
    this.certificate = certificate;
    const tls = { ...certificate, requestCert: true, rejectUnauthorized: false };
    // This code uses only what the requests and answers of both versions share.
    const answer = (request: IncomingMessage | Http2ServerRequest, response: ServerResponse | Http2ServerResponse): void =>
      this.#answer(request as IncomingMessage, response as ServerResponse);
    this.#server =
      http === 1
        ? createServer(tls, answer)
        : createSecureServer({ ...tls, settings: { maxConcurrentStreams: streamsMax }, maxSessionMemory: unreadMegabytesMax }, answer);
    this.#server.on('session', (session: ServerHttp2Session) => {
      this.#sessions.add(session);
      session.once('close', () => this.#sessions.delete(session));
    });
    this.#server.on('connection', (socket: Socket) => {
      if (this.#isStopped) return void socket.destroy();
      this.#sockets.add(socket);
      socket.once('close', () => this.#sockets.delete(socket));
    });
    this.kubeconfig = join(folder, 'kubeconfig');
    for (const type of replicatedTypes(kcpTypes))
      this.store.serve({ ...type, identity: type.identityOf === undefined ? '' : identityOf(type.identityOf) });
  }

  static async start(options: StandInOptions = {}): Promise<ShardStandIn> {
    const folder = await mkdtemp(join(tmpdir(), 'strata-stand-in-'));
    const { certificate: cert, key } = selfSigned(['127.0.0.1']);
    const standIn = new ShardStandIn(folder, { cert, key }, options);
    standIn.#server.listen(0, '127.0.0.1');
    await once(standIn.#server, 'listening');
    await writeFile(standIn.kubeconfig, standIn.kubeconfigText({ token }));
    return standIn;
  }

  get url(): string {
    return `https://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** What loadKubeconfig would return for it. */
  get access(): KubeAccess {
    const credentials = { ca: this.certificate.cert, authorization: `Bearer ${token}` };
    return { server: this.url, serverName: undefined, insecure: false, credentials: () => Promise.resolve(credentials) };
  }

  get openConnections(): number {
    return this.#sockets.size;
  }

  /**
   * A kubeconfig whose user has the members `user`, and whose cluster has the members `cluster`
   * too. Its CA is the present certificate.
   */
  kubeconfigText(user: Members, cluster: Members = {}): string {
    const ca = Buffer.from(this.certificate.cert).toString('base64');
    return JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [{ name: 'stand-in', cluster: { server: `${this.url}/clusters/root`, 'certificate-authority-data': ca, ...cluster } }],
      users: [{ name: 'agent', user }],
      contexts: [{ name: 'stand-in', context: { cluster: 'stand-in', user: 'agent' } }],
      'current-context': 'stand-in',
    });
  }

  /** Serves with another certificate for new connections. */
  present(certificate: Readonly<{ cert: string; key: string }>): void {
    this.certificate = certificate;
    this.#server.setSecureContext(certificate);
  }

  get openWatches(): number {
    return this.#watches.size;
  }

  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  /** Sends GOAWAY on every connection: open requests continue, new ones need another connection. */
  goAway(): void {
    for (const session of this.#sessions) session.goaway();
  }

  /** The next answer breaks after so many bytes of its body. */
  cutNextAfter(bytes: number): void {
    this.#bytesUntilCut = bytes;
  }

  bookmark(): void {
    for (const { type, write } of this.#watches) write(bookmarkOf(type, this.store.revision));
  }

  /**
   * Breaks every connection and refuses new ones until `restart`. It keeps its objects, and its
   * port, which another program could take otherwise.
   */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.cut();
  }

  async restart(): Promise<void> {
    this.#isStopped = false;
  }

  async close(): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.cut();
    await closed;
    await rm(this.#folder, { recursive: true, force: true });
  }

  #answer(request: IncomingMessage, answer: ServerResponse): void {
    const url = new URL(request.url ?? '/', this.url);
    this.requests.push(`${url.pathname}${url.search}`);
    const caller: Caller = {
      authorization: request.headers.authorization ?? '',
      userAgent: request.headers['user-agent'] ?? '',
      user: String((request.socket as TLSSocket).getPeerCertificate().subject?.CN ?? ''),
    };
    this.callers.push(caller);
    if (!this.accepts(caller)) return refuse(answer, 401, 'Unauthorized', 'Unauthorized');
    if (this.instead(url, answer)) return;
    if (url.pathname === '/clusters/system:shard/api/v1/namespaces/default/configmaps/apiexport-identity-cache')
      return this.#identities(answer);

    const [, cluster = '', group = '', version = '', resource = '', identity = ''] =
      /^\/clusters\/([^/]+)\/api(?:s\/([^/]+))?\/([^/]+)\/([^/:]+)(?::([^/]+))?$/.exec(decodeURIComponent(url.pathname)) ?? [];
    const type = this.store.typeAt(group, version, resource);
    if (type === undefined || (cluster === '*' && identity !== type.identity)) return refuse(answer, 404, '', '404 page not found');
    if (this.forbidden.has(resource)) return refuse(answer, 403, 'Forbidden', `${resource} is forbidden`);

    const query = url.searchParams;
    const labels = Object.fromEntries(
      (query.get('labelSelector') ?? '')
        .split(',')
        .filter(Boolean)
        .map((each) => each.split('=')),
    );
    const scope: StandInScope = { type, cluster, labels };
    if (query.get('watch') === 'true') this.#watch(answer, scope, query);
    else this.#list(answer, scope, query);
  }

  #identities(answer: ServerResponse): void {
    const exports = replicatedTypes(kcpTypes)
      .map(({ identityOf }) => identityOf)
      .filter((name) => name !== undefined);
    this.#body(answer, JSON.stringify({ kind: 'ConfigMap', data: Object.fromEntries(exports.map((name) => [name, identityOf(name)])) }));
    answer.end();
  }

  #list(answer: ServerResponse, scope: StandInScope, query: URLSearchParams): void {
    const [page1 = String(this.store.revision), after = ''] = query.get('continue')?.split('\n') ?? [];
    if (query.has('continue') && Number(page1) < this.store.compacted)
      return refuse(answer, 410, 'Expired', 'the continue token is too old');
    const limit = Number(query.get('limit') ?? '0');
    const rest = this.store.list(scope).filter(([place]) => place > after);
    const page = limit > 0 ? rest.slice(0, limit) : rest;
    const items = page.map(([, object]) => (isBare(scope.type) ? object : typed(scope.type, object)));
    const next = page.length < rest.length ? { continue: `${page1}\n${page.at(-1)?.[0] ?? ''}` } : {};
    const { kind, group, version } = scope.type;
    // As kcp does: members in the order of their names, so the list's metadata comes after its
    // items.
    this.#body(
      answer,
      JSON.stringify({ apiVersion: `${group}/${version}`, items, kind: `${kind}List`, metadata: { ...next, resourceVersion: page1 } }),
    );
    answer.end();
  }

  #watch(answer: ServerResponse, scope: StandInScope, query: URLSearchParams): void {
    const states = query.get('sendInitialEvents') === 'true';
    if (states && this.refusesWatchList) return refuse(answer, 422, 'Invalid', 'sendInitialEvents: Forbidden');
    const from = Number(query.get('resourceVersion') ?? '0');
    const write = (event: unknown): void => this.#body(answer, `${JSON.stringify(event)}\n`);
    answer.writeHead(200, { 'content-type': 'application/json' });
    answer.flushHeaders();
    if (!states && from < this.store.compacted) {
      const message = `too old resource version: ${from} (${this.store.compacted})`;
      write({
        type: 'ERROR',
        object: { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', message, reason: 'Expired', code: 410 },
      });
      return void answer.end();
    }
    if (states) {
      for (const [, object] of this.store.list(scope)) write({ type: 'ADDED', object: typed(scope.type, object) });
      write(bookmarkOf(scope.type, this.store.revision, { 'k8s.io/initial-events-end': 'true' }));
    } else for (const event of this.store.since(from)) send(event);

    // As in kcp, a watch from a later revision than the store's gets no event until the store has
    // passed it.
    function send(event: Parameters<typeof seenFrom>[1]): void {
      if (event.revision <= from) return;
      const seen = seenFrom(scope, event);
      if (seen !== undefined) write({ type: seen.type, object: typed(scope.type, seen.object) });
    }
    const unsubscribe = this.store.subscribe(send);
    const watch = { type: scope.type, write };
    this.#watches.add(watch);
    answer.once('close', () => {
      unsubscribe();
      this.#watches.delete(watch);
    });
  }

  /** Writes, and breaks the connection where a test asked for it. */
  #body(answer: ServerResponse, text: string): void {
    const bytes = Buffer.from(text);
    if (this.#bytesUntilCut === undefined || bytes.length <= this.#bytesUntilCut) {
      if (this.#bytesUntilCut !== undefined) this.#bytesUntilCut -= bytes.length;
      answer.write(bytes);
      return;
    }
    answer.write(bytes.subarray(0, this.#bytesUntilCut), () => breakOff(answer));
    this.#bytesUntilCut = undefined;
  }
}

/** Breaks an answer off, as a server in Go does whose handler panics. */
export function breakOff(answer: ServerResponse): void {
  const { stream } = answer as ServerResponse | Http2ServerResponse as Partial<Http2ServerResponse>;
  if (stream === undefined) answer.destroy();
  else stream.close(constants.NGHTTP2_INTERNAL_ERROR);
}

/** The identity that the stand-in gives an APIExport of kcp's own. */
export function identityOf(exportName: string): string {
  return `identity-of-${exportName.replaceAll('.', '-')}`;
}

/** Types that are not custom resources: in a list, their items have no kind and no apiVersion. */
function isBare({ group }: StandInType): boolean {
  return !group.endsWith('.kcp.io');
}

function typed({ group, version, kind }: StandInType, object: KubeObject): KubeObject {
  return { kind, apiVersion: group === '' ? version : `${group}/${version}`, ...object };
}

function bookmarkOf(type: StandInType, revision: number, annotations: Readonly<Record<string, string>> = {}): unknown {
  return { type: 'BOOKMARK', object: typed(type, { metadata: { resourceVersion: String(revision), annotations } }) };
}

function refuse(answer: ServerResponse, status: number, reason: string, message: string): void {
  answer.writeHead(status, { 'content-type': reason === '' ? 'text/plain' : 'application/json' });
  const body = { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', message, reason, code: status };
  answer.end(reason === '' ? `${message}\n` : JSON.stringify(body));
}
