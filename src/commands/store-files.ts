/**
 * `strata backup`, `restore` and `check`: an operator's commands on the files of a store, to which
 * the user needs access. Only `backup` works while a server uses them. `check` also checks etcd.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { checkOptions, storeFileOptions } from '../config/options/command-options.js';
import type { CommandValues } from '../config/command-line/command-values.js';
import { formatBytes } from '../config/options/quantity.js';
import { SettingsError } from '../config/settings-error.js';
import { CacheError } from '../domain/errors.js';
import type { CheckResult } from '../store/damaged-store.js';
import { databaseName } from '../store/sqlite/store-files.js';
import { command, type Command, type Surroundings } from './command.js';

type StoreFileValues = CommandValues<typeof storeFileOptions>;

export const backup: Command = command({
  words: ['backup'],
  operands: '<file>',
  help: 'Copy the store into a file, while a server runs on it or not',
  options: storeFileOptions,
  run: async ({ operands: [file = ''], options }, { print, clock }) => {
    const from = databaseOf(options);
    if (!existsSync(from)) throw new CacheError(`there is no store in ${directoryOf(options)}: name the --root-directory of the server`);
    if (existsSync(file)) throw new SettingsError([`${file} exists already, and a backup never replaces a file`]);
    const { copyDatabase } = await import('../store/sqlite/backup.js');
    const beganMs = clock.now();
    const bytes = await copyDatabase(from, file);
    print(`Copied ${from} to ${file}: ${formatBytes(bytes)} in ${seconds(clock.now() - beganMs)}.\n`);
  },
});

export const restore: Command = command({
  words: ['restore'],
  operands: '<file>',
  help: 'Put a backup in place of a stopped server’s store; the old store is kept under another name',
  options: storeFileOptions,
  run: async ({ operands: [file = ''], options }, { print, clock }) => {
    const directory = directoryOf(options);
    const [{ restoreStore }, { ownMigrations }] = await Promise.all([
      import('../store/sqlite/restore.js'),
      import('../store/sqlite/migrate.js'),
    ]);
    const { before, resourceVersion } = await restoreStore(file, directory, { migrations: ownMigrations, nowMs: clock.now() });
    const at = resourceVersion === undefined ? '' : `, which stands at resourceVersion ${resourceVersion}`;
    print(`Restored ${file}${at}.\n`);
    if (before !== undefined) print(`The store that was there before is now ${before}\n`);
  },
});

export const check: Command = command({
  words: ['check'],
  operands: '[file]',
  help: 'Look for damage in a backup, in the store of a server that is stopped, or in etcd; exits with 1 if there is any',
  options: checkOptions,
  run: async ({ operands: [file], options }, { print, clock }) => {
    if (options.etcdServers.length > 0) {
      if (file !== undefined)
        throw new SettingsError([`strata check takes a file or --etcd-servers, not both: leave out ${file} or --etcd-servers`]);
      return checkEtcd(options, { print, clock });
    }
    const [{ inspect, inspectStopped }, { ownMigrations }] = await Promise.all([
      import('../store/sqlite/inspect.js'),
      import('../store/sqlite/migrate.js'),
    ]);
    const name = file ?? databaseOf(options);
    const how = { thorough: true };
    const { schema, resourceVersion, checks } =
      file === undefined ? inspectStopped(directoryOf(options), ownMigrations, how) : inspect(file, ownMigrations, how);
    print(
      `${name}${schema > 0 ? `: schema ${schema}` : ''}${resourceVersion === undefined ? '' : `, at resourceVersion ${resourceVersion}`}\n`,
    );
    if (printChecks(checks, print) > 0) throw new CacheError(`${name} is damaged: restore a backup with strata restore`);
    print('No damage was found.\n');
  },
});

async function checkEtcd(
  options: CommandValues<typeof checkOptions>,
  { print, clock }: Pick<Surroundings, 'print' | 'clock'>,
): Promise<void> {
  const [{ inspectEtcd }, { etcdOptionsOf }] = await Promise.all([import('../store/etcd/inspect.js'), import('../server/open-store.js')]);
  const etcd = etcdOptionsOf(options);
  const { endpoints, prefix } = etcd;
  const { revision, checks } = await inspectEtcd(etcd, clock);
  print(`${endpoints.join(',')} ${prefix}: at resourceVersion ${revision}\n`);
  if (printChecks(checks, print) > 0) throw new CacheError(`${prefix} in etcd has keys that servers cannot serve and therefore skip`);
  print('No damage was found.\n');
}

/** Returns the number of problems. */
function printChecks(checks: readonly CheckResult[], print: Surroundings['print']): number {
  for (const each of checks) print(formatChecked(each));
  return checks.reduce((sum, { problems }) => sum + problems.length, 0);
}

function formatChecked({ what, examined, problems }: CheckResult): string {
  const head = `${what.padEnd(8)} ${problems.length === 0 ? 'sound' : 'DAMAGED'}  ${examined} examined\n`;
  return head + problems.map((problem) => `         ${problem.replaceAll('\n', ' ')}\n`).join('');
}

function directoryOf({ rootDirectory, dataDirectory }: StoreFileValues): string {
  return dataDirectory ?? join(rootDirectory, 'data');
}

function databaseOf(options: StoreFileValues): string {
  return join(directoryOf(options), databaseName);
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}
