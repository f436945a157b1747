/**
 * The command line: what a call prints and its exit code. Only tests that need a real process start
 * one.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from '../../support/test.js';
import { agentOptions, certOptions, operatorOptions, statusOptions } from '../../../src/config/options/command-options.js';
import { environmentName, type CommandOption, type Option } from '../../../src/config/options/option.js';
import { options } from '../../../src/config/options/options.js';
import { programResult, type ProgramResult } from '../../support/commands/run-program.js';
import { builtMain } from '../../support/project.js';

const strata = (...args: string[]): Promise<ProgramResult> => programResult(args);

test('the version goes to stdout and ends with 0; a wrong call goes to stderr and ends with 2', async (t) => {
  const run = (...args: string[]) => spawnSync(process.execPath, [builtMain(), ...args], { encoding: 'utf8' });
  const [asked, wrong] = [run('--version'), run('status', 'extra')];

  t.is(asked.status, 0);
  t.regex(asked.stdout, /^\d+\.\d+\.\d+\n$/);
  t.deepEqual([wrong.status, wrong.stdout], [2, '']);
  t.regex(wrong.stderr, /^strata: [^\n]+\n$/);
  t.like(await strata('--version'), { exitCode: 0, stdout: asked.stdout });
  t.like(await strata('status', 'extra'), { exitCode: 2, stderr: wrong.stderr });
});

test('cache-server prints the same version', async (t) => {
  t.like(await strata('cache-server', '--version'), { exitCode: 0, stdout: (await strata('--version')).stdout });
});

test('the help of serve lists every option with its variable and default', async (t) => {
  const { exitCode, stdout } = await strata('serve', '--help');

  t.is(exitCode, 0);
  for (const option of Object.values<Option<unknown>>(options)) {
    t.true(stdout.includes(`--${option.flag} ${option.placeholder === 'boolean' ? '[' : '<'}`), option.flag);
    t.true(
      stdout
        .replace(/\s+/g, ' ')
        .includes(`(env: ${environmentName(option)}${option.default === undefined ? '' : `; default: ${option.default}`})`),
      option.flag,
    );
  }
});

test('without a known terminal width no line of a help is longer than 80', async (t) => {
  for (const words of [[], ['serve'], ['proxy'], ['cache-server'], ['kcp-front-proxy'], ['push'], ['status'], ['cert', 'shard']]) {
    const { stdout } = await strata(...words, '--help');
    const lines = stdout.split('\n');

    t.true(lines.length > 20, words.join(' '));
    t.deepEqual(
      lines.filter((line) => line.length > 80),
      [],
    );
  }
});

test('a terminal of thirty columns wraps the description of a flag between words', async (t) => {
  const before = { isTTY: process.stdout.isTTY, columns: process.stdout.columns };
  t.teardown(() => Object.assign(process.stdout, before));
  Object.assign(process.stdout, { isTTY: true, columns: 30 });
  for (const words of [['serve'], ['kcp-front-proxy']]) {
    const { stdout } = await strata(...words, '--help');
    const said = stdout.split('\n').filter((line) => line.startsWith('      '));

    t.true(said.length > 100, words.join(' '));
    t.deepEqual(
      said.filter((line) => line.length > 30 && line.trim().includes(' ')),
      [],
    );
  }
});

test('a list option that is repeated adds to the list, in every command', async (t) => {
  const given = ['--tls-cipher-suites=one', '--tls-cipher-suites', 'two,three'];
  for (const words of [['serve'], ['proxy', '--mapping-file=x'], ['cache-server'], ['kcp-front-proxy', '--mapping-file=x']]) {
    const { exitCode, stderr } = await strata(...words, ...given);
    t.is(exitCode, 2);
    t.regex(stderr, /no cipher suite "one"; .*no cipher suite "two"; .*no cipher suite "three"/, words.join(' '));
  }
});

test('the help of a command lists its options with their variables', async (t) => {
  for (const [words, table] of [
    [['push'], agentOptions],
    [['status'], statusOptions],
    [['shards', 'list'], operatorOptions],
    [['shards', 'remove'], operatorOptions],
    [['cert', 'shard'], certOptions],
    [['cert', 'serving'], certOptions],
  ] as const) {
    const { exitCode, stdout } = await strata(...words, '--help');
    t.is(exitCode, 0);
    for (const option of Object.values<CommandOption<unknown>>(table)) {
      t.true(stdout.includes(`--${option.flag}`), `${words.join(' ')} --${option.flag}`);
      t.true(stdout.includes(environmentName(option)), `${words.join(' ')} ${environmentName(option)}`);
    }
  }
});

test('a command does its work, prints the result and ends with 0; repeated, it fails with 1 and one line', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'strata-bin-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  const cert = ['cert', 'shard', 'amber', `--ca-directory=${join(folder, 'ca')}`, '--out-directory', folder];

  const first = await strata(...cert);
  const again = await strata(...cert);
  const forced = await strata(...cert, '--force');

  t.is(first.exitCode, 0);
  t.regex(first.stdout, /^Wrote .*shard-amber\.crt/);
  t.is(again.exitCode, 1);
  t.is(again.stdout, '');
  t.regex(again.stderr, /^strata: [^\n]*--force does so\n$/);
  t.is(forced.exitCode, 0);
  t.regex(
    forced.stdout,
    /^Replaced .*shard-amber\.crt, which was of O=strata, CN=amber until \S+\.\nReplaced .*shard-amber\.key\.\nWrote /,
  );
});

for (const args of [
  [],
  ['bogus'],
  ['push'],
  ['shards'],
  ['shards', 'bogus'],
  ['shards', 'remove', '--cache=https://a', '--cert-file=a', '--key-file=b'],
  ['status', 'extra'],
  ['status', '--cache=ftp://a', '--cert-file=a', '--key-file=b'],
  ['cert', 'shard', 'BAD', '--ca-directory=/nonexistent/ca'],
  ['cert', 'admin', '--force', 'true'],
  ['cert', 'serving'],
  ['serve', 'extra'],
  ['serve', '--bind-adress=::'],
  ['serve', '--secure-port=-1'],
  ['serve', '--config=/absent.yaml'],
  ['cache-server', '--secure-prt=1'],
]) {
  test(`a wrong call ends with 2 and says why on stderr: strata ${args.join(' ')}`, async (t) => {
    const { exitCode, stdout, stderr } = await strata(...args);

    t.is(exitCode, 2);
    t.is(stdout, '');
    t.not(stderr, '');
  });
}

test('the error about a mistyped flag names the nearest one, whichever way its value is written', async (t) => {
  t.regex((await strata('serve', '--bind-adress=::')).stderr, /Did you mean --bind-address/);
  t.regex((await strata('serve', '--bind-adress', '::')).stderr, /Did you mean --bind-address/);
});

test("under the name cache-server it accepts upstream's flags", (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'strata-bin-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  symlinkSync(builtMain(), join(folder, 'cache-server'));

  const { status, stdout } = spawnSync(process.execPath, [join(folder, 'cache-server'), '--help'], { encoding: 'utf8' });

  t.is(status, 0);
  t.regex(stdout, /--embedded-etcd-directory/);
});
