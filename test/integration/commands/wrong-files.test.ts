/**
 * What an operator reads after giving a file that cannot be used: the option, the file and the
 * cause.
 */
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import type { ExecutionContext } from 'ava';
import { someOf } from '../../support/sizes.js';
import { test } from '../../support/test.js';
import { Authority } from '../../../src/certificates/authority.js';
import { systemClock } from '../../../src/clock.js';
import { push } from '../../../src/commands/push.js';
import { status } from '../../../src/commands/status.js';
import { deferred } from '../../../src/domain/base/promises.js';
import { CacheError } from '../../../src/domain/errors.js';
import { spawn } from '../../support/children.js';
import { builtMain } from '../../support/project.js';
import { ShardStandIn } from '../../support/shard-stand-in.js';
import { TestAuthority } from '../../support/test-authority.js';
import { aServer, TestServer, until } from '../../support/test-server.js';
import { called } from '../../support/commands/called.js';

const dayMs = 86_400_000;
const tomorrow = { ...systemClock, wallMs: () => Date.now() + dayMs };

async function aFolder(t: ExecutionContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'strata-files-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

function withCauses(error: unknown): string {
  if (!(error instanceof CacheError)) throw error;
  return error.cause instanceof Error ? `${error.message}: ${error.cause.message}` : error.message;
}

async function failureOf(run: () => Promise<unknown>): Promise<string> {
  try {
    await run();
    return '';
  } catch (error) {
    return withCauses(error);
  }
}

/** Unusable files for a pair of certificate and key, and for a CA, by what is wrong with them. */
async function wrongFiles(
  t: ExecutionContext,
): Promise<Readonly<Record<'absent' | 'folder' | 'empty' | 'torn' | 'text' | 'fifo' | 'device', string>>> {
  const folder = await aFolder(t);
  const at = (name: string): string => join(folder, name);
  await mkdir(at('folder'));
  await writeFile(at('empty'), '');
  execFileSync('mkfifo', [at('fifo')]);
  await writeFile(at('text'), 'no PEM');
  const authority = new TestAuthority(folder);
  await writeFile(at('torn'), (await readFile(authority.certificateFile, 'utf8')).slice(0, 200));
  return {
    absent: at('absent'),
    folder: at('folder'),
    empty: at('empty'),
    torn: at('torn'),
    text: at('text'),
    fifo: at('fifo'),
    device: '/dev/zero',
  };
}

test('each option that names a file says what is wrong with the file', async (t) => {
  const wrong = await wrongFiles(t);
  const cache = await aServer(t);
  const shard = await ShardStandIn.start();
  t.teardown(() => shard.close());
  const { certificateFile, keyFile } = cache.master;
  const other = cache.authority.issue({ user: 'other', groups: [] });
  const pair = { 'cert-file': certificateFile, 'key-file': keyFile };
  const asking = { cache: cache.url, 'ca-file': cache.certificateFile, ...pair };
  const pushing = {
    kubeconfig: shard.kubeconfig,
    'shard-name': 'amber',
    cache: cache.url,
    'cache-ca-file': cache.certificateFile,
    ...pair,
  };
  const asked = (flag: string, file: string) => failureOf(() => called(status, { flags: { ...asking, [flag]: file } }));
  const pushed = (flag: string, file: string) => failureOf(() => called(push, { flags: { ...pushing, [flag]: file } }));
  const served = (flag: string, file: string) =>
    failureOf(() => TestServer.start({ flags: { 'tls-cert-file': certificateFile, 'tls-private-key-file': keyFile, [flag]: file } }));
  for (const [flags, fails] of [
    [['ca-file', 'cert-file', 'key-file'], asked],
    [['cache-ca-file', 'cert-file', 'key-file'], pushed],
    [['client-ca-file', 'tls-cert-file', 'tls-private-key-file'], served],
  ] as const)
    for (const flag of flags)
      for (const [what, file] of Object.entries(wrong)) {
        const why = await fails(flag, file);
        t.true(why.includes(`--${flag}`), `${flag} ${what}: ${why}`);
        t.true(why.includes(file), `${flag} ${what}: ${why}`);
        if (what === 'absent') t.regex(why, /ENOENT/);
        if (what === 'folder') t.regex(why, /EISDIR/);
        if (what === 'fifo' || what === 'device') t.regex(why, /a regular file is needed/);
      }
  for (const why of [await asked('key-file', other.keyFile), await pushed('key-file', other.keyFile)])
    t.regex(why, /--cert-file, --key-file: .* is not the key of the certificate in/);
  for (const file of Object.values(wrong)) t.true((await pushed('kubeconfig', file)).includes(file));
});

test('each option that names a file for the parent says what is wrong with the file', async (t) => {
  const { empty } = await wrongFiles(t);
  const folder = await aFolder(t);
  const { certificateFile, keyFile } = await new TestAuthority(folder).issue({ user: 'eu', groups: [], uris: ['strata://cache/eu'] });
  const right = { 'parent-ca-file': certificateFile, 'parent-cert-file': certificateFile, 'parent-key-file': keyFile };
  for (const flag of someOf(Object.keys(right))) {
    const flags = {
      ...right,
      [flag]: empty,
      'parent-urls': 'https://127.0.0.1:1',
      'root-directory': join(folder, flag),
      'secure-port': '0',
    };
    const args = Object.entries(flags).map(([name, value]) => `--${name}=${value}`);
    // A child process, because a server that fails this late leaves its store open.
    const server = spawn(builtMain(), ['serve', '--bind-address=127.0.0.1', ...args], { stdio: ['ignore', 'ignore', 'pipe'] });
    const stderr = text(server.stderr);
    const [code] = (await once(server, 'exit')) as [number | null];
    t.is(code, 1, flag);
    t.regex(await stderr, new RegExp(`strata: .*--${flag}.*${empty}`), flag);
  }
});

for (const what of ['cache', 'shard'] as const)
  test(`an agent whose CA did not sign the certificate of the ${what} names both in its error, and goes on`, async (t) => {
    const folder = await aFolder(t);
    const stranger = new TestAuthority(folder);
    const cache = await aServer(t);
    const shard = await ShardStandIn.start();
    t.teardown(() => shard.close());
    const kubeconfig = join(folder, 'kubeconfig');
    const ofShard = { 'certificate-authority-data': undefined, 'certificate-authority': stranger.certificateFile };
    await writeFile(kubeconfig, shard.kubeconfigText({ token: ShardStandIn.token }, what === 'shard' ? ofShard : {}));
    const certificate = cache.authority.issue({ user: 'amber', groups: ['strata'], uris: ['strata://shard/amber'] });
    const logStream = new PassThrough();
    let logged = '';
    logStream.on('data', (chunk: Buffer) => (logged += chunk.toString()));
    const stopped = deferred<string>();
    const ended = called(push, {
      flags: {
        kubeconfig,
        'shard-name': 'amber',
        cache: cache.url,
        'cache-ca-file': what === 'cache' ? stranger.certificateFile : cache.certificateFile,
        'cert-file': certificate.certificateFile,
        'key-file': certificate.keyFile,
      },
      surroundings: { logStream, untilStopped: () => stopped.promise },
    });

    const server = what === 'cache' ? `127.0.0.1:${cache.port}` : shard.url;
    const complaint = `the certificate that ${server} shows is not one that a CA in ${stranger.certificateFile} signed`;
    await until(() => logged.includes(complaint)).catch(() => t.fail(logged));
    t.pass();
    stopped.resolve('SIGTERM');
    await ended;
  });

test('a client certificate that is not valid yet is reported as such, with the time from which it is valid', async (t) => {
  const cache = await aServer(t);
  const folder = await aFolder(t);
  const authority = await Authority.create({ clock: tomorrow }, { name: 'early', validityDays: 5 });
  const { certificatePem, keyPem } = await authority.issueClient({ user: 'me', groups: ['system:masters'], validityDays: 2 });
  const [certFile, keyFile] = [join(folder, 'me.crt'), join(folder, 'me.key')];
  await writeFile(certFile, certificatePem);
  await writeFile(keyFile, keyPem);
  const flags = { cache: cache.url, 'ca-file': cache.certificateFile, 'cert-file': certFile, 'key-file': keyFile };

  t.regex(await failureOf(() => called(status, { flags })), /the client certificate names nobody: it is not valid before 20\d\d-.*Z$/);
});

test('a serving certificate that is not valid yet is reported as such, with the time from which it is valid', async (t) => {
  const folder = await aFolder(t);
  const authority = await Authority.create({ clock: systemClock }, { name: 'now', validityDays: 5 });
  const early = await Authority.load({ clock: tomorrow }, { certificatePem: authority.certificatePem, keyPem: authority.keyPem });
  const { certificatePem, keyPem } = await early.issueServing({ names: ['127.0.0.1'], validityDays: 2 });
  const files = { ca: join(folder, 'ca.crt'), cert: join(folder, 'tls.crt'), key: join(folder, 'tls.key') };
  await writeFile(files.ca, authority.certificatePem);
  await writeFile(files.cert, certificatePem);
  await writeFile(files.key, keyPem);
  const cache = await aServer(t, { flags: { 'tls-cert-file': files.cert, 'tls-private-key-file': files.key } });
  const { certificateFile, keyFile } = cache.master;
  const flags = { cache: cache.url, 'ca-file': files.ca, 'cert-file': certificateFile, 'key-file': keyFile };

  t.regex(await failureOf(() => called(status, { flags })), /is not valid yet, by the clock of this machine, which is at 20\d\d-.*Z/);
  const [line] = cache.logged.filter(({ event }) => event === 'certificate.not-yet-valid');
  t.like(line, { level: 'error', fields: { use: 'serving', file: files.cert } });
});
