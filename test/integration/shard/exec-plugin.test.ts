/**
 * Exec plugins of kubeconfigs: real programs that issue credentials to an agent, or fail to. One
 * test at a time, because a program cannot be started while another process that forked during its
 * writing has it open (ETXTBSY).
 */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { inspect } from 'node:util';
import type { ExecutionContext } from 'ava';
import { test } from '../../support/test.js';
import { systemClock } from '../../../src/clock.js';
import { CacheError } from '../../../src/domain/errors.js';
import { parseExecCommand } from '../../../src/shard/kubeconfig/exec-command.js';
import { ExecPlugin } from '../../../src/shard/kubeconfig/exec-plugin.js';
import { loadKubeconfig } from '../../../src/shard/kubeconfig/kubeconfig.js';
import { ManualClock } from '../../support/store/manual-clock.js';
import { ShardStandIn } from '../../support/shard-stand-in.js';
import { TestAuthority } from '../../support/test-authority.js';
import { until } from '../../support/test-server.js';
import { aFolder, execVersion, isRunning, replace, TestPlugin, type Members } from './a-kubeconfig.js';
import { anAgentWith, recording } from './an-agent.js';

const secret = 'hunter2-hunter2';
const never = new AbortController().signal;
/** An expiry that is far away. */
const expirationTimestamp = '2999-01-01T00:00:00Z';

async function aPlugin(t: ExecutionContext, body?: string): Promise<TestPlugin> {
  return TestPlugin.make(await aFolder(t), body);
}

function opened({ folder, command }: TestPlugin, clock = systemClock, exec: Members = {}): ExecPlugin {
  const entry = { apiVersion: execVersion, command, ...exec };
  return new ExecPlugin({ clock, environment: process.env }, parseExecCommand(entry, { folder, cluster: {} }));
}

test.serial('readers that start together start one plugin, and its credential serves them all', async (t) => {
  const [shard, plugin] = await Promise.all([ShardStandIn.start(), aPlugin(t)]);
  shard.accepts = ({ authorization }) => authorization === 'Bearer issued';
  await plugin.answers({ token: 'issued' });

  const rig = await anAgentWith(t, shard, await plugin.kubeconfig(shard));
  await rig.synced();

  t.true(shard.requests.length > 10);
  t.is((await plugin.runs()).length, 1);
});

test.serial('an answer without a status is an error that names the plugin, and is not kept', async (t) => {
  const [shard, plugin] = await Promise.all([ShardStandIn.start(), aPlugin(t)]);
  shard.accepts = ({ authorization }) => authorization === 'Bearer issued';
  await plugin.answers(undefined);

  const rig = await anAgentWith(t, shard, await plugin.kubeconfig(shard));
  await until(() => rig.events('source.read.failed').length > 0);
  await plugin.answers({ token: 'issued' });
  await rig.synced();

  t.regex(
    String(rig.events('source.read.failed')[0]?.fields['why']),
    /^the exec plugin .*plugin\.sh gives no credential: its answer has no status/,
  );
});

test.serial('a credential that the shard answers with 401 is dropped, and the plugin issues another one', async (t) => {
  const [shard, plugin] = await Promise.all([ShardStandIn.start(), aPlugin(t)]);
  let accepted = 'first';
  shard.accepts = ({ authorization }) => authorization === `Bearer ${accepted}`;
  await plugin.answers({ token: 'first', expirationTimestamp });
  const rig = await anAgentWith(t, shard, await plugin.kubeconfig(shard));
  await rig.synced();

  accepted = 'second';
  await plugin.answers({ token: 'second', expirationTimestamp });
  const before = shard.requests.length;
  shard.cut();
  await until(() => shard.callers.slice(before).some(({ authorization }) => authorization === 'Bearer second'));

  await until(() => shard.openWatches > 10);
  t.is((await plugin.runs()).length, 2);
});

test.serial('a certificate that a plugin issues is shown to the shard, and so is the next one', async (t) => {
  const [shard, plugin] = await Promise.all([ShardStandIn.start(), aPlugin(t)]);
  const authority = new TestAuthority(plugin.folder);
  const issue = async (user: string): Promise<void> => {
    const { certificate, key } = authority.issue({ user, groups: [] });
    await plugin.answers({ clientCertificateData: certificate, clientKeyData: key, expirationTimestamp });
  };
  let accepted = 'first';
  shard.accepts = ({ user }) => user === accepted;
  await issue('first');
  const rig = await anAgentWith(t, shard, await plugin.kubeconfig(shard));
  await rig.synced();

  await issue('second');
  accepted = 'second';
  shard.cut();

  await until(() => shard.callers.at(-1)?.user === 'second');
  await until(() => shard.openWatches > 10);
  t.is((await plugin.runs()).length, 2);
});

test.serial('readers that retry do not each start a plugin that fails', async (t) => {
  const [shard, plugin] = await Promise.all([ShardStandIn.start(), aPlugin(t, 'exit 7')]);

  const began = performance.now();
  const rig = await anAgentWith(t, shard, await plugin.kubeconfig(shard));
  await until(async () => (await plugin.runs()).length >= 3);

  const runs = (await plugin.runs()).length;
  const tookMs = performance.now() - began;
  // At least a second after the first run, two after the second, and so on.
  t.true(tookMs >= 1_000 * (2 ** (runs - 1) - 1), `${runs} runs in ${tookMs.toFixed(0)} ms`);
  t.regex(String(rig.events('source.read.failed')[0]?.fields['why']), /plugin\.sh gives no credential: it ended with the exit code 7/);
});

test.serial('a 401 drops the credential of its request, and no later one', async (t) => {
  const plugin = await aPlugin(t);
  await plugin.answers({ token: 'issued' });
  const clock = new ManualClock();
  const exec = opened(plugin, clock);

  const first = await exec.credential(undefined, never);
  clock.advance(60_000);
  exec.drop(first);
  const second = await exec.credential(undefined, never);
  exec.drop(first);

  t.is(await exec.credential(undefined, never), second);
  t.is((await plugin.runs()).length, 2);
});

test.serial('a plugin is ended once no request waits for it, though it ignores SIGTERM and has started another program', async (t) => {
  const plugin = await aPlugin(t, `trap '' TERM\nsleep 30 &\necho $! > "$folder/other"\nwait\nsleep 30`);
  const exec = opened(plugin);
  const [leaves, stays] = [new AbortController(), new AbortController()];

  const left = t.throwsAsync(exec.credential(undefined, leaves.signal), { message: 'left' });
  const ended = t.throwsAsync(exec.credential(undefined, stays.signal), { message: 'left' });
  await until(async () => (await plugin.runs()).length > 0);
  const [pid = 0] = await plugin.runs();
  leaves.abort(new Error('left'));
  await left;
  t.true(isRunning(pid));

  stays.abort(new Error('left'));
  await ended;
  await until(() => !isRunning(pid), 3_000);
  process.kill(Number(await readFile(join(plugin.folder, 'other'), 'utf8')));
  t.is((await plugin.runs()).length, 1);
});

test.serial('a new request does not join a run that was ended, but starts another one', async (t) => {
  const plugin = await aPlugin(t, '[ -f "$folder/answer" ] || exec sleep 30\ncat "$folder/answer"');
  const exec = opened(plugin);
  const leaving = new AbortController();
  const left = exec.credential(undefined, leaving.signal);
  await until(async () => (await plugin.runs()).length > 0);

  await plugin.answers({ token: 'issued' });
  leaving.abort(new Error('left'));
  await t.throwsAsync(left, { message: 'left' });

  t.is((await exec.credential(undefined, never)).authorization, 'Bearer issued');
});

test.serial('a plugin that hangs is stopped after a minute, and the error says so', async (t) => {
  const plugin = await aPlugin(t, 'exec sleep 30');
  const clock = new ManualClock();
  const failed = t.throwsAsync(opened(plugin, clock).credential(undefined, never), { instanceOf: CacheError });
  await until(async () => (await plugin.runs()).length > 0);
  const [pid = 0] = await plugin.runs();

  clock.advance(59_999);
  await delay(50);
  t.true(isRunning(pid));
  clock.advance(1);

  t.regex((await failed).message, /plugin\.sh gives no credential: it has not answered within 60 s/);
  t.false(isRunning(pid));
});

test.serial('a credential is used until ten seconds before it expires', async (t) => {
  const plugin = await aPlugin(t);
  const clock = new ManualClock(Date.parse('2026-01-01T00:00:00Z'));
  const exec = opened(plugin, clock);
  const use = async (): Promise<number> => {
    await exec.credential(undefined, never);
    return (await plugin.runs()).length;
  };

  await plugin.answers({ token: 'a', expirationTimestamp: '2026-01-01T00:10:00Z' });
  t.is(await use(), 1);
  clock.advance(589_999);
  t.is(await use(), 1);
  clock.advance(1);
  // The plugin issues the same credential until it expires, so asking again earlier would change
  // nothing.
  t.is(await use(), 2);
  clock.advance(9_999);
  t.is(await use(), 2);
  clock.advance(1);
  await plugin.answers({ token: 'a', expirationTimestamp: null });
  t.is(await use(), 3);
  clock.advance(365 * 86_400_000);
  t.is(await use(), 3);
});

test.serial('the error about a wrong answer says what is wrong, and quotes nothing of the answer', async (t) => {
  const folder = await aFolder(t);
  const authority = new TestAuthority(folder);
  const [one, other] = ['one', 'other'].map((user) => authority.issue({ user, groups: [] }));
  const sound = { apiVersion: execVersion, kind: 'ExecCredential' };
  const cases: [unknown, RegExp][] = [
    [`${secret} {`, /its answer is not JSON/],
    [null, /the kind of its answer is not ExecCredential/],
    [{ ...sound, kind: secret, status: { token: secret } }, /the kind of its answer is not ExecCredential/],
    [{ ...sound, apiVersion: secret, status: { token: secret } }, /apiVersion of its answer is not client\.authentication\.k8s\.io\/v1,/],
    [sound, /no status/],
    [{ ...sound, status: secret }, /no status/],
    [{ ...sound, status: { password: secret } }, /neither a token nor a certificate/],
    [{ ...sound, status: { token: { secret } } }, /the token of its answer is not a string/],
    [{ ...sound, status: { token: `${secret}\n` } }, /no HTTP header can carry/],
    [{ ...sound, status: { token: secret, expirationTimestamp: secret } }, /the expirationTimestamp of its answer is not a time/],
    [{ ...sound, status: { clientKeyData: secret } }, /only one of a certificate and its key/],
    [{ ...sound, status: { clientCertificateData: secret, clientKeyData: secret } }, /clientCertificateData holds no PEM certificate/],
    [{ ...sound, status: { clientCertificateData: one?.certificate, clientKeyData: secret } }, /clientKeyData holds no PEM private key/],
    [{ ...sound, status: { clientCertificateData: one?.certificate, clientKeyData: other?.key } }, /is not the key of the certificate/],
  ];
  const plugin = await TestPlugin.make(folder);
  for (const [answer, message] of cases) {
    await replace(join(folder, 'answer'), typeof answer === 'string' ? answer : JSON.stringify(answer));

    const error = await t.throwsAsync(opened(plugin).credential(undefined, never), { instanceOf: CacheError, message });

    t.true(error.message.includes(plugin.folder), error.message);
    t.false(inspect(error, { depth: 9 }).includes(secret), error.message);
    if (other !== undefined) t.false(inspect(error, { depth: 9 }).includes(other.key.slice(40, 80)));
  }

  await plugin.answers({ clientCertificateData: one?.certificate, clientKeyData: one?.key });
  t.like(await opened(plugin).credential(undefined, never), { certificate: one?.certificate, key: one?.key });
});

test.serial('no error contains an argument or the environment, and the one about a missing plugin has its install hint', async (t) => {
  const plugin = await aPlugin(t, 'head -c 2000000 /dev/zero');
  const given = { args: [secret], env: [{ name: 'SECRET', value: secret }], installHint: 'Get it at the counter.' };
  const missing = opened(plugin, systemClock, { ...given, command: './absent' });
  const talkative = opened(plugin, systemClock, given);

  for (const [exec, message] of [
    [missing, /absent gives no credential: it cannot be started \(ENOENT\)\nGet it at the counter\./],
    [talkative, /plugin\.sh gives no credential: its answer is longer than 1048576 bytes/],
  ] as const) {
    const error = await t.throwsAsync(exec.credential(undefined, never), { instanceOf: CacheError, message });
    t.false(inspect(error, { depth: 9 }).includes(secret));
  }
});

test.serial('a plugin gets its arguments, its environment and its ExecCredential input, but no terminal', async (t) => {
  const plugin = await aPlugin(
    t,
    'printf "%s|" "$@" "$AUDIENCE" "$INHERITED" > "$folder/given"\nprintf %s "$KUBERNETES_EXEC_INFO" > "$folder/info"\nwc -c > "$folder/typed"\ncat "$folder/answer"',
  );
  await plugin.answers({ token: 'issued' });
  const shard = await ShardStandIn.start();
  t.teardown(() => shard.close());
  const path = await plugin.kubeconfig(
    shard,
    {
      args: ['--for', 'two words'],
      env: [{ name: 'AUDIENCE', value: 'shards' }],
      interactiveMode: 'IfAvailable',
      provideClusterInfo: true,
    },
    { extensions: [{ name: 'client.authentication.k8s.io/exec', extension: { audience: 'amber' } }], 'tls-server-name': '127.0.0.1' },
  );
  const access = await loadKubeconfig(
    { path, context: undefined, allowInsecure: false },
    { clock: systemClock, log: recording([]), environment: { ...process.env, INHERITED: 'yes' } },
  );

  const { ca = '', authorization } = await access.credentials(never);

  const read = (name: string): Promise<string> => readFile(join(plugin.folder, name), 'utf8');
  t.is(authorization, 'Bearer issued');
  t.is(await read('given'), '--for|two words|shards|yes|');
  t.is((await read('typed')).trim(), '0');
  t.deepEqual(JSON.parse(await read('info')), {
    kind: 'ExecCredential',
    apiVersion: execVersion,
    spec: {
      cluster: {
        server: `${shard.url}/clusters/root`,
        'tls-server-name': '127.0.0.1',
        'certificate-authority-data': Buffer.from(ca).toString('base64'),
        config: { audience: 'amber' },
      },
      interactive: false,
    },
  });
});

test.serial('a plugin that cannot be run is an error when the kubeconfig is read', async (t) => {
  const shard = await ShardStandIn.start();
  t.teardown(() => shard.close());
  const plugin = await aPlugin(t);
  const cases: [Members, RegExp][] = [
    [{ interactiveMode: 'always' }, /interactiveMode is not one of Never, IfAvailable, Always/],
    [{ interactiveMode: 5 }, /interactiveMode is not one of/],
    [{ provideClusterInfo: 'true' }, /provideClusterInfo is not a boolean/],
    [{ interactiveMode: 'Always' }, /interactiveMode is Always, but nobody is there to answer \.\/plugin\.sh/],
    [{ apiVersion: 'client.authentication.k8s.io/v1alpha1' }, /exec\.apiVersion is not one of/],
    [{ command: '' }, /exec\.command is not a string/],
    [{ args: secret }, /exec\.args is not a list/],
    [{ env: [{ name: 'A', value: { secret } }] }, /exec\.env has values that are not strings/],
  ];
  for (const [exec, message] of cases) {
    const path = await plugin.kubeconfig(shard, exec);
    const parts = { clock: systemClock, log: recording([]), environment: {} };
    const error = await t.throwsAsync(loadKubeconfig({ path, context: undefined, allowInsecure: false }, parts), {
      instanceOf: CacheError,
      message,
    });
    t.false(error.message.includes(secret));
  }
});

test.serial('a user with a token or a certificate needs no plugin, as in client-go', async (t) => {
  const shard = await ShardStandIn.start();
  t.teardown(() => shard.close());
  const plugin = await aPlugin(t, 'exit 1');
  const path = join(plugin.folder, 'kubeconfig');
  await writeFile(path, shard.kubeconfigText({ token: 'kept', exec: { apiVersion: execVersion, command: plugin.command } }));
  const access = await loadKubeconfig(
    { path, context: undefined, allowInsecure: false },
    { clock: systemClock, log: recording([]), environment: {} },
  );

  t.is((await access.credentials(never)).authorization, 'Bearer kept');
  t.deepEqual(await plugin.runs(), []);
});
