/**
 * `strata cert …`: issues certificates for people without an authority of their own. The authority
 * that signs them is kept in a directory.
 *
 * Each command prints the rights of its certificate; a master's allows everything. File names begin
 * with the kind, so that they never collide with the files of another kind, of the administrator or
 * of the authority (`ca`). `--force` replaces only the same pair:
 *
 *   shard-NAME.crt   cache-NAME.crt    reader-NAME.crt
 *   syncer-NAME.crt  serving-NAME.crt  admin.crt         with a .key beside each
 */
import type { CertificateAndKey } from '../certificates/authority.js';
import type { LocalAuthority } from '../certificates/local-authority.js';
import { parseSpokenFor, speakersGroup } from '../certificates/spoken-for.js';
import { certOptions } from '../config/options/command-options.js';
import type { CommandValues } from '../config/command-line/command-values.js';
import { SettingsError } from '../config/settings-error.js';
import type { SpokenFor } from '../domain/caller.js';
import { CacheError } from '../domain/errors.js';
import { command, type Command, type Surroundings } from './command.js';
import { fileStem, parseServingName } from './serving-name.js';

type Issue = Readonly<{
  /** The name of the files, without ending. */
  name: string;
  sign: (local: LocalAuthority, validityDays: number) => Promise<CertificateAndKey>;
  /** The rights of the certificate, as the end of "NAME.crt …". */
  allows: string;
  /** Which programs need the files, and how each receives them. */
  usage: (files: Readonly<{ certFile: string; keyFile: string; caFile: string }>) => readonly (readonly [string, string])[];
}>;

const dayMs = 86_400_000;
const masters = 'system:masters';
const whoWidth = 12;

export const certShard = certSpeaker('shard', {
  help: 'Issue the certificate with which an agent pushes for a shard',
  what: 'a shard',
  allows: (shard) => `speaks for the shard ${shard} and reads everything`,
  usage: (shard, { certFile, keyFile }) => ['the shard', `strata push --shard-name ${shard} --cert-file ${certFile} --key-file ${keyFile}`],
});

export const certCache = certSpeaker('cache', {
  help: 'Issue the certificate that a cache shows to its parent',
  what: 'a cache',
  server: 'its parent',
  allows: (name) => `speaks for the cache ${name} and reads everything`,
  usage: (_, { certFile, keyFile }) => ['the cache', `shows ${certFile} with ${keyFile}`],
});

export const certReader = certSpeaker('reader', {
  help: 'Issue a certificate that reads everything and changes nothing: for Prometheus, and for people who look',
  what: "a reader: lower case letters, digits and '-'",
  allows: () => 'reads everything and changes nothing',
  usage: (_, { certFile, keyFile }) => [
    'the reader',
    `shows ${certFile} with ${keyFile}: at /metrics, for strata status, strata console, kubectl get`,
  ],
});

export const certSyncer = certSpeaker('syncer', {
  help: 'Issue a certificate that reads what is labelled for a syncer',
  what: "a syncer: lower case letters, digits and '-'",
  allows: (id) => `reads what is labelled for the syncer ${id}`,
  usage: (id, { certFile, keyFile }) => ['the syncer', `shows ${certFile} with ${keyFile}, below /services/syncer/${id}/clusters/`],
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
      allows: `may do everything (${masters})`,
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
    if (wrong.length > 0) throw new SettingsError(wrong.map((text) => `${JSON.stringify(text)} is neither a DNS name nor an IP address`));
    const [first = '', ...others] = operands;
    const serving: Issue = {
      name: `serving-${fileStem(first)}`,
      sign: ({ authority }, validityDays) => authority.issueServing({ names: [first, ...others], validityDays }),
      allows: `identifies a server as ${operands.join(', ')}`,
      usage: ({ certFile, keyFile, caFile }) => [
        ['the cache', `strata serve --tls-cert-file ${certFile} --tls-private-key-file ${keyFile}`],
        ['its clients', `strata status --ca-file ${caFile}`],
      ],
    };
    await issue(serving, options, surroundings);
  },
});

/**
 * `what`: the operand in words. `server`: the server that must trust the authority. `usage`: the
 * program that shows the certificate, and how.
 */
function certSpeaker(
  kind: SpokenFor['kind'],
  {
    help,
    what,
    server = 'the cache',
    allows,
    usage,
  }: Readonly<{
    help: string;
    what: string;
    server?: string;
    allows: (name: string) => string;
    usage: (name: string, files: Readonly<{ certFile: string; keyFile: string }>) => readonly [string, string];
  }>,
): Command {
  return command({
    words: ['cert', kind],
    operands: '<name>',
    help,
    options: certOptions,
    run: async ({ operands: [name = ''], options }, surroundings) => {
      const speaksFor = parseSpokenFor([`strata://${kind}/${name}`]);
      if (speaksFor === undefined) throw new SettingsError([`${JSON.stringify(name)} is not the name of ${what}`]);
      const signed: Issue = {
        name: `${kind}-${name}`,
        sign: ({ authority }, validityDays) => authority.issueClient({ user: name, groups: [speakersGroup], speaksFor, validityDays }),
        allows: allows(name),
        usage: (files) => [[server, `strata serve --client-ca-file ${files.caFile}`], usage(name, files)],
      };
      await issue(signed, options, surroundings);
    },
  });
}

async function issue(
  { name, sign, allows, usage }: Issue,
  options: CommandValues<typeof certOptions>,
  { print, clock }: Surroundings,
): Promise<void> {
  const { caDirectory, outDirectory, validityMs, force } = options;
  // Loaded only when the command signs, so that help is fast.
  const { LocalAuthority } = await import('../certificates/local-authority.js');
  const local = await LocalAuthority.open({ clock }, caDirectory);
  const { certFile: caFile, keyFile: caKeyFile } = local.files;
  const untilMs = clock.wallMs() + validityMs;
  if (untilMs > local.authority.validUntilMs)
    throw new CacheError(`the authority ${caFile} is valid until ${dateOf(local.authority.validUntilMs)}; choose a shorter --validity`);

  const { replaced, ...files } = local.write(await sign(local, validityMs / dayMs), { directory: outDirectory, name, force });
  const lines = [
    ...replaced.map((what) => `Replaced ${what}.`),
    `Wrote ${files.certFile} and ${files.keyFile}. The certificate ${allows}, until ${dateOf(untilMs)}.`,
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
