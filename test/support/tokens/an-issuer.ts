/** An OpenID Connect issuer: its configuration and its keys, over TLS. */
import { createServer } from 'node:https';
import { freePorts } from '../free-ports.js';
import type { TestAuthority } from '../test-authority.js';
import type { Teardown } from '../test-server.js';
import { aJwt, aKeyPair, type TestKey } from './jwt.js';

export class AnIssuer {
  keys: readonly TestKey[] = [aKeyPair('first')];
  /**
   * Replaces its documents as the answer: with a text, JSON, bytes written by hand before it ends
   * the connection, or a promise: nothing.
   */
  answers: ((path: string) => unknown) | undefined;
  /** How often a client requested its keys. */
  asked = 0;
  readonly #server: ReturnType<typeof createServer>;
  #port = 0;

  private constructor(authority: TestAuthority) {
    const { certificate: cert, key } = authority.issue({ user: 'issuer', groups: [], hosts: ['127.0.0.1'], usages: ['server'] });
    this.#server = createServer({ cert, key }, (request, response) => {
      const document = this.answers === undefined ? this.#document(request.url ?? '') : this.answers(request.url ?? '');
      if (document instanceof Promise) return;
      if (document instanceof Uint8Array) return void request.socket.end(document);
      response.statusCode = document === undefined ? 404 : 200;
      response.end(typeof document === 'string' ? document : JSON.stringify(document));
    });
  }

  static async start(t: Teardown, authority: TestAuthority): Promise<AnIssuer> {
    const issuer = new AnIssuer(authority);
    await issuer.start();
    t.teardown(() => issuer.stop());
    return issuer;
  }

  get url(): string {
    return `https://127.0.0.1:${this.#port}/realm`;
  }

  /** Starts on the port that it had before. */
  async start(): Promise<void> {
    this.#port ||= (await freePorts(1))[0]!;
    await new Promise<void>((resolve) => this.#server.listen(this.#port, '127.0.0.1', resolve));
  }

  async stop(): Promise<void> {
    if (!this.#server.listening) return;
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.#server.closeAllConnections();
    await closed;
  }

  /** A token for the client `kcp`, valid for an hour, of `alice`. */
  token(claims: object = {}, key: TestKey = this.keys[0]!, header: Readonly<Record<string, unknown>> = {}): string {
    return aJwt({ iss: this.url, aud: 'kcp', sub: 'alice', exp: Math.floor(Date.now() / 1000) + 3_600, ...claims }, key, header);
  }

  #document(path: string): unknown {
    if (path === '/realm/.well-known/openid-configuration') return { issuer: this.url, jwks_uri: `${this.url}/keys` };
    if (path !== '/realm/keys') return undefined;
    this.asked += 1;
    return { keys: this.keys.map(({ id, publicKey }) => ({ ...publicKey.export({ format: 'jwk' }), kid: id, use: 'sig' })) };
  }
}
