/**
 * `strata cert …`: certificates for people who have no authority of their own, signed by one that is kept in a directory.
 *
 * Each states what it gives: a master's can do everything. Files are named after the kind, so that no name of one kind is
 * that of another, of the administrator or of the authority (`ca`), and `--force` replaces nothing but the same pair:
 *
 *   shard-NAME.crt  cache-NAME.crt  reader-NAME.crt  serving-NAME.crt  admin.crt      with a .key beside each
 */
import type { CertificateAndKey } from '../certificates/authority.js';
import type { LocalAuthority } from '../certificates/local-authority.js';
import { speakersGroup } from '../certificates/spoken-for.js';
import { parseCacheName } from '../domain/cache-name.js';
import { certOptions } from '../config/command-options.js';
import type { CommandValues } from '../config/command-values.js';
import { SettingsError } from '../config/settings-error.js';
import type { SpokenFor } from '../domain/caller.js';
import { CacheError } from '../domain/errors.js';
import { parseShardName } from '../domain/shard.js';
import { command, type Command, type Surroundings } from './command.js';
import { fileStem, parseServingName } from './serving-name.js';

type Issue = Readonly<{
  /** Of the files. */
  name: string;
  sign: (local: LocalAuthority, validityDays: number) => Promise<CertificateAndKey>;
  /** What its bearer may do, as the end of "NAME.crt …". */
  gives: string;
  /** Who needs it, and how it is given to them. */
  usage: (files: Readonly<{ certFile: string; keyFile: string; caFile: string }>) => readonly (readonly [string, string])[];
}>;

const dayMs = 86_400_000;
const masters = 'system:masters';
const whoWidth = 12;

export const certShard: Command = command({
  words: ['cert', 'shard'],
  operands: '<name>',
  help: 'Issue the certificate with which a shard is pushed for',
  options: certOptions,
  run: async ({ operands: [text = ''], options }, surroundings) => {
    const shard = parseShardName(text);
    if (shard === undefined) throw new SettingsError([`${JSON.stringify(text)} is not the name of a shard`]);
    const signed: Issue = {
      ...speaker({ kind: 'shard', shard }),
      gives: `speaks for the shard ${shard} and reads everything`,
      usage: ({ certFile, keyFile, caFile }) => [
        ['the cache', `strata serve --client-ca-file ${caFile}`],
        ['the shard', `strata push --shard-name ${shard} --cert-file ${certFile} --key-file ${keyFile}`],
      ],
    };
    await issue(signed, options, surroundings);
  },
});

export const certCache: Command = command({
  words: ['cert', 'cache'],
  operands: '<name>',
  help: 'Issue the certificate that a cache shows to its parent',
  options: certOptions,
  run: async ({ operands: [text = ''], options }, surroundings) => {
    const name = parseCacheName(text);
    if (name === undefined) throw new SettingsError([`${JSON.stringify(text)} is not the name of a cache`]);
    const signed: Issue = {
      ...speaker({ kind: 'cache', name }),
      gives: `speaks for the cache ${name} and reads everything`,
      usage: ({ certFile, keyFile, caFile }) => [
        ['its parent', `strata serve --client-ca-file ${caFile}`],
        ['the cache', `shows ${certFile} with ${keyFile}`],
      ],
    };
    await issue(signed, options, surroundings);
  },
});

export const certReader: Command = command({
  words: ['cert', 'reader'],
  operands: '<name>',
  help: 'Issue a certificate that reads everything and changes nothing: for Prometheus, and for people who look',
  options: certOptions,
  run: async ({ operands: [text = ''], options }, surroundings) => {
    const name = parseCacheName(text);
    if (name === undefined)
      throw new SettingsError([`${JSON.stringify(text)} is not the name of a reader: lower case letters, digits and '-'`]);
    const signed: Issue = {
      ...speaker({ kind: 'reader', name }),
      gives: 'reads everything and changes nothing',
      usage: ({ certFile, keyFile, caFile }) => [
        ['the cache', `strata serve --client-ca-file ${caFile}`],
        ['the reader', `shows ${certFile} with ${keyFile}: at /metrics, for strata status, strata console, kubectl get`],
      ],
    };
    await issue(signed, options, surroundings);
  },
});

export const certAdmin: Command = command({
  words: ['cert', 'admin'],
  operands: '',
  help: 'Issue a certificate that may do everything',
  options: certOptions,
  run: async ({ options }, surroundings) => {
    const name = 'admin';
    const administrator: Issue = {
      name,
      sign: ({ authority }, validityDays) => authority.issueClient({ user: name, groups: [masters], validityDays }),
      gives: `may do everything (${masters})`,
      usage: ({ certFile, keyFile, caFile }) => [
        ['the cache', `strata serve --client-ca-file ${caFile}`],
        ['you', `strata status --cert-file ${certFile} --key-file ${keyFile}`],
      ],
    };
    await issue(administrator, options, surroundings);
  },
});

export const certServing: Command = command({
  words: ['cert', 'serving'],
  operands: '<names...>',
  help: 'Issue the certificate a cache shows to those who reach it under these DNS names and IP addresses',
  options: certOptions,
  run: async ({ operands, options }, surroundings) => {
    const wrong = operands.filter((text) => parseServingName(text) === undefined);
    if (wrong.length > 0) throw new SettingsError(wrong.map((text) => `${JSON.stringify(text)} is no DNS name and no IP address`));
    const [first = '', ...others] = operands;
    const serving: Issue = {
      name: `serving-${fileStem(first)}`,
      sign: ({ authority }, validityDays) => authority.issueServing({ names: [first, ...others], validityDays }),
      gives: `shows a server as ${operands.join(', ')}`,
      usage: ({ certFile, keyFile, caFile }) => [
        ['the cache', `strata serve --tls-cert-file ${certFile} --tls-private-key-file ${keyFile}`],
        ['its clients', `strata status --ca-file ${caFile}`],
      ],
    };
    await issue(serving, options, surroundings);
  },
});

function speaker(speaksFor: SpokenFor): Pick<Issue, 'name' | 'sign'> {
  const user = speaksFor.kind === 'shard' ? speaksFor.shard : speaksFor.name;
  return {
    name: `${speaksFor.kind}-${user}`,
    sign: ({ authority }, validityDays) => authority.issueClient({ user, groups: [speakersGroup], speaksFor, validityDays }),
  };
}

async function issue(
  { name, sign, gives, usage }: Issue,
  options: CommandValues<typeof certOptions>,
  { print, clock }: Surroundings,
): Promise<void> {
  const { caDirectory, outDirectory, validityMs, force } = options;
  // Loaded only when it has to sign, so that help comes at once.
  const { LocalAuthority } = await import('../certificates/local-authority.js');
  const local = await LocalAuthority.open({ clock }, caDirectory);
  const { certFile: caFile, keyFile: caKeyFile } = local.files;
  const untilMs = clock.wallMs() + validityMs;
  if (untilMs > local.authority.validUntilMs)
    throw new CacheError(`the authority ${caFile} is valid until ${dateOf(local.authority.validUntilMs)}; choose a shorter --validity`);

  const { replaced, ...files } = local.write(await sign(local, validityMs / dayMs), { directory: outDirectory, name, force });
  const lines = [
    ...replaced.map((what) => `Replaced ${what}.`),
    `Wrote ${files.certFile} and ${files.keyFile}: it ${gives}, until ${dateOf(untilMs)}.`,
    local.isNew
      ? `It is signed by a new authority, ${caFile}. Whoever has ${caKeyFile} can sign more: keep it to yourself.`
      : `It is signed by ${caFile}.`,
    ...usage({ ...files, caFile }).map(([who, how]) => `  ${who.padEnd(whoWidth)} ${how}`),
  ];
  print(`${lines.join('\n')}\n`);
}

function dateOf(ms: number): string {
  return new Date(ms).toISOString().replace(/:\d\d\.\d+Z$/, 'Z');
}
