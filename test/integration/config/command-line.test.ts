import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from '../../support/test.js';
import { agentOptions, certOptions, operatorOptions, statusOptions } from '../../../src/config/command-options.js';
import { environmentName, type CommandOption, type Option } from '../../../src/config/option.js';
import { options } from '../../../src/config/options.js';
import { builtMain } from '../../support/project.js';

function strata(...args: string[]): { status: number | null; stdout: string; stderr: string } {
  return spawnSync(process.execPath, args[0]?.startsWith('/') === true ? args : [builtMain(), ...args], { encoding: 'utf8' });
}

test('the version goes to stdout and ends with 0', (t) => {
  const { status, stdout } = strata('--version');

  t.is(status, 0);
  t.regex(stdout, /^\d+\.\d+\.\d+\n$/);
});

test('cache-server prints the same version', (t) => {
  t.like(strata('cache-server', '--version'), { status: 0, stdout: strata('--version').stdout });
});

test('the help of serve lists every option with its variable and default', (t) => {
  const { status, stdout } = strata('serve', '--help');

  t.is(status, 0);
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

test('the help of a command lists its options with their variables', (t) => {
  for (const [words, table] of [
    [['push'], agentOptions],
    [['status'], statusOptions],
    [['shards', 'list'], operatorOptions],
    [['shards', 'remove'], operatorOptions],
    [['cert', 'shard'], certOptions],
    [['cert', 'serving'], certOptions],
  ] as const) {
    const { status, stdout } = strata(...words, '--help');
    t.is(status, 0);
    for (const option of Object.values<CommandOption<unknown>>(table)) {
      t.true(stdout.includes(`--${option.flag}`), `${words.join(' ')} --${option.flag}`);
      t.true(stdout.includes(environmentName(option)), `${words.join(' ')} ${environmentName(option)}`);
    }
  }
});

test('a command does its work, prints what it did and ends with 0; repeated, it fails with 1 and one line', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'strata-bin-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  const cert = ['cert', 'shard', 'amber', `--ca-directory=${join(folder, 'ca')}`, '--out-directory', folder];

  const first = strata(...cert);
  const again = strata(...cert);
  const forced = strata(...cert, '--force');

  t.is(first.status, 0);
  t.regex(first.stdout, /^Wrote .*shard-amber\.crt/);
  t.is(again.status, 1);
  t.is(again.stdout, '');
  t.regex(again.stderr, /^strata: [^\n]*--force does so\n$/);
  t.is(forced.status, 0);
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
  test(`a wrong call ends with 2 and says why on stderr: strata ${args.join(' ')}`, (t) => {
    const { status, stdout, stderr } = strata(...args);

    t.is(status, 2);
    t.is(stdout, '');
    t.not(stderr, '');
  });
}

test('a mistyped flag is answered with the nearest one, whichever way its value is written', (t) => {
  t.regex(strata('serve', '--bind-adress=::').stderr, /Did you mean --bind-address/);
  t.regex(strata('serve', '--bind-adress', '::').stderr, /Did you mean --bind-address/);
});

test("under the name cache-server it accepts upstream's flags", (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'strata-bin-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  symlinkSync(builtMain(), join(folder, 'cache-server'));

  const { status, stdout } = strata(join(folder, 'cache-server'), '--help');

  t.is(status, 0);
  t.regex(stdout, /--embedded-etcd-directory/);
});
