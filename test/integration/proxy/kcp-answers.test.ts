/**
 * Repeats requests that kcp's own front proxy answered itself, or passed on to a backend that
 * echoes them, and compares. `test/clients/golden/kcp-front-proxy.jsonl` was recorded from kcp
 * `dac74f595` with two shards. `e2e/live-front-door` compares the answers of the shards themselves.
 */
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { test } from '../../support/test.js';
import { projectFile } from '../../support/project.js';
import { TestAuthority, type Certificate } from '../../support/test-authority.js';
import { until } from '../../support/test-server.js';
import { anInstallation } from '../../support/proxy/a-front-door.js';
import type { Echoed } from '../../support/proxy/echo-backend.js';

type Headers = Readonly<Record<string, string | string[]>>;
type Own = Readonly<{ status: number; headers: Headers; body?: string }>;
/** What the backend received. */
type Told = Readonly<{ http: string; method: string; target: string; headers: Headers; client: string }>;
type Recorded = Readonly<{
  id: string;
  as: string;
  http2: boolean;
  method: string;
  path: string;
  headers: Headers;
  body?: string;
  answer: Own & Readonly<{ echoed?: Told }>;
}>;

/** Answers that differ on purpose, and why. */
const otherwise: Readonly<Record<string, (answer: Own) => Own>> = {
  // Strata answers in JSON: every client reads it, and checks the content type.
  'path-unknown-protobuf': ({ status, headers }) => ({ status, headers: { ...headers, 'content-type': 'application/json' } }),
  // The checks are other ones, with other names.
  'readyz-verbose': ({ status, headers }) => ({ status, headers }),
  'livez-verbose': ({ status, headers }) => ({ status, headers }),
};
/**
 * Headers that kcp's proxy passes on and Strata does not. Only the proxy may name the caller. `te`
 * concerns one connection.
 */
const notPassedOn: ReadonlySet<string> = new Set(['x-remote-uid', 'te']);
/** Headers that depend on the client: Go's transport in the recording, Node's client here. */
const ofClients: ReadonlySet<string> = new Set(['accept', 'accept-encoding', 'host', 'content-length', 'content-type']);

const recorded = readFileSync(projectFile('test', 'clients', 'golden', 'kcp-front-proxy.jsonl'), 'utf8')
  .trimEnd()
  .split('\n')
  .map((line) => JSON.parse(line) as Recorded);

async function certificates(
  t: ExecutionContext,
  clients: TestAuthority,
  requestheader: TestAuthority,
): Promise<Map<string, Certificate | null>> {
  const stranger = await anAuthority(t, 'stranger');
  return new Map<string, Certificate | null>([
    ['none', null],
    ['admin', clients.issue({ user: 'kcp-admin', groups: ['system:kcp:admin'] })],
    ['user1', clients.issue({ user: 'user-1', groups: ['team-a'] })],
    ['lca', clients.issue({ user: 'lca', groups: ['system:kcp:logical-cluster-admin', 'system:kcp:external-logical-cluster-admin'] })],
    ['stranger', stranger.issue({ user: 'alice', groups: [] })],
    ['rh', requestheader.issue({ user: 'kcp-mounts-proxy', groups: [] })],
    ['rhbad', requestheader.issue({ user: 'not-allowed', groups: [] })],
  ]);
}

async function anAuthority(t: ExecutionContext, name: string): Promise<TestAuthority> {
  const folder = await mkdtemp(join(tmpdir(), 'strata-kcp-answers-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  return new TestAuthority(folder, { name });
}

test("the front door gives kcp's own answers, and sends a backend what kcp's front proxy sends it", async (t) => {
  const requestheader = await anAuthority(t, 'requestheader');
  const { door } = await anInstallation(t, {
    settings: {
      requestheaderCaFile: requestheader.certificateFile,
      requestheaderNames: ['kcp-mounts-proxy'],
      corsOrigins: [/\/\/example\.com$/],
    },
  });
  const shown = await certificates(t, door.authority, requestheader);
  t.true(recorded.length > 60);
  for (const { id, as, http2, method, path, headers, body, answer } of recorded) {
    const certificate = shown.get(as);
    if (certificate === undefined) return t.fail(`${id}: nobody is ${as}`);
    const target = path.replaceAll('${ORG}', 'org1').replaceAll('${TEAM}', 'team1');
    const asked = { headers: { ...headers }, ...(body !== undefined && { body }) };
    const ask = () => door.client({ as: certificate, http2 }).raw(method, target, asked);
    // A front door that has not heard from its parent for a while answers 503 instead of unknown;
    // upstream never does.
    if (answer.status !== 503) await until(async () => (await ask()).status !== 503);
    const got = await ask();
    if (answer.echoed !== undefined) {
      t.is(got.status, 200, id);
      t.deepEqual(toldBy(JSON.parse(got.text) as Echoed), expectedOf(answer.echoed, door.port), id);
      continue;
    }
    const expected = otherwise[id]?.(answer) ?? answer;
    t.is(got.status, expected.status, id);
    for (const [name, value] of Object.entries(expected.headers)) t.is(got.headers[name], String(value), `${id}: ${name}`);
    if (expected.body !== undefined) t.is(got.text, expected.body, id);
  }
});

function toldBy({ http, method, target, headers }: Echoed): Omit<Told, 'client'> {
  const kept = Object.entries(headers).filter(([name]) => !ofClients.has(name));
  const masked = kept.map(([name, value]) => [name, String(value).replace(/^X509SHA256=[0-9a-f]{64}$/, 'X509SHA256=…')]);
  return { http, method, target, headers: Object.fromEntries(masked) as Headers };
}

function expectedOf({ http, method, target, headers }: Told, port: number): Omit<Told, 'client'> {
  const kept = Object.entries(headers).filter(([name]) => !ofClients.has(name) && !notPassedOn.has(name));
  const filled = kept.map(([name, value]) => [name, String(value).replaceAll('${HOST}', `127.0.0.1:${port}`)]);
  return { http, method, target, headers: Object.fromEntries(filled) as Headers };
}
