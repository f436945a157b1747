/**
 * Every command, and the command lines of kcp's own programs, must read boolean flags as pflag
 * does.
 */
import { test } from '../../support/test.js';
import { commands } from '../../../src/commands/commands.js';
import type { Surroundings } from '../../../src/commands/command.js';
import { cacheServerFlags } from '../../../src/config/kcp-flags/cache-server-flags.js';
import { proxyOptions } from '../../../src/config/options/command-options.js';
import { runCommandLine, type DeclaredCommand, type OptionDeclaration } from '../../../src/config/command-line/command-line.js';
import { frontProxyFlags } from '../../../src/config/kcp-flags/front-proxy-flags.js';
import { options } from '../../../src/config/options/options.js';
import { readUpstreamFlags } from '../../../src/config/kcp-flags/upstream-flags.js';

const declared: readonly Pick<DeclaredCommand, 'words' | 'operands' | 'options'>[] = [
  { words: ['serve'], operands: '', options: Object.values(options) },
  { words: ['proxy'], operands: '', options: [...Object.values(options), ...Object.values(proxyOptions)] },
  ...commands.map((command) => command({} as Surroundings)),
];

function isBoolean({ default: byDefault }: OptionDeclaration): boolean {
  return byDefault === 'true' || byDefault === 'false';
}

type Seen = Readonly<{ flags: Readonly<Record<string, string>>; operands: readonly string[] }>;

async function seen(command: Pick<DeclaredCommand, 'words' | 'operands' | 'options'>, args: readonly string[]): Promise<Seen> {
  let found: Seen | undefined;
  const run: DeclaredCommand['run'] = async (called) => void (found = called);
  const line = { name: 'strata', description: '', version: '1', groups: {}, commands: [{ ...command, help: '', run }] };
  const silent = { print: () => {}, printError: () => {} };
  await runCommandLine({ ...line, ...silent }, [...command.words, ...args]);
  if (found === undefined) throw new Error('it did not run');
  return found;
}

test('a boolean flag of any command stands alone, or has its value after "="', async (t) => {
  let checked = 0;
  for (const command of declared)
    for (const { flag } of command.options.filter(isBoolean)) {
      checked += 1;
      const operands = command.operands === '' ? [] : ['one'];
      for (const [arg, value] of [
        [`--${flag}`, 'true'],
        [`--${flag}=true`, 'true'],
        [`--${flag}=false`, 'false'],
        [`--${flag}=`, ''],
        [`--${flag}=a=b`, 'a=b'],
      ] as const) {
        const first = await seen(command, [arg, ...operands]);
        t.is(first.flags[flag], value, `${command.words.join(' ')} ${arg}`);
        t.deepEqual(first.operands, operands);
        t.is((await seen(command, [...operands, arg])).flags[flag], value);
      }
    }
  t.true(checked >= 10, String(checked));
});

test('a boolean flag never uses the next argument', async (t) => {
  for (const command of declared)
    for (const { flag } of command.options.filter(isBoolean)) {
      const [operand, others] = [command.operands === '' ? undefined : 'false', command.options.filter((each) => each.flag !== flag)];
      if (operand !== undefined) t.deepEqual((await seen(command, [`--${flag}`, operand])).operands, [operand]);
      else await t.throwsAsync(seen(command, [`--${flag}`, 'false']), { message: /too many arguments/ }, flag);
      const next = others.find((each) => !isBoolean(each));
      if (next === undefined) continue;
      const { flags } = await seen(command, [`--${flag}`, `--${next.flag}`, `--${flag}`, ...(operand === undefined ? [] : [operand])]);
      t.is(flags[next.flag], `--${flag}`, 'the argument after a flag that takes a value is that value');
      t.is(flags[flag], 'true');
    }
});

test('after "--" there are no flags', async (t) => {
  const command = declared.find(({ words }) => words.join(' ') === 'cert serving')!;
  t.deepEqual((await seen(command, ['--', '--force=true', '--force'])).operands, ['--force=true', '--force']);
});

for (const [text, value] of [
  ...['1', 't', 'T', 'true', 'TRUE', 'True'].map((each) => [each, true] as const),
  ...['0', 'f', 'F', 'false', 'FALSE', 'False'].map((each) => [each, false] as const),
  ...['', 'yes', 'on', 'tRUE', ' true', '2'].map((each) => [each, undefined] as const),
])
  test(`${JSON.stringify(text)} is read as Go reads it: ${value}`, (t) => {
    const reading = options.accessLog.read(text);
    t.is(reading.kind === 'read' ? reading.value : undefined, value);
  });

for (const [name, table] of [
  ['cache-server', cacheServerFlags],
  ['kcp-front-proxy', frontProxyFlags],
] as const)
  test(`in the command line of ${name} a boolean flag stands alone, and never uses the next argument`, (t) => {
    const ours = [...Object.values(options), ...(name === 'cache-server' ? [] : Object.values(proxyOptions))].filter(isBoolean);
    for (const { flag } of ours) t.true(table.get(flag)?.boolean, flag);
    for (const [flag, { boolean }] of table) {
      if (!boolean) continue;
      const read = readUpstreamFlags([`--${flag}`, 'false'], table);
      t.is(read.kind, 'read', flag);
      t.true(read.kind === 'read' && read.warnings.some((each) => each.includes('"false": arguments are ignored')), flag);
    }
  });
