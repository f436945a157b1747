/** `strata resolve`: the logical cluster and the shard of a path, and how fresh the answer is. */
import { exitCodes } from '../config/command-line/command-line.js';
import { operatorOptions } from '../config/options/command-options.js';
import { SettingsError } from '../config/settings-error.js';
import { unreachable } from '../domain/errors.js';
import { parsePathAnswer, resolveTarget, type ResolvedPath } from '../lookup/path-resolver.js';
import { alignedRows, formatFreshness } from './terminal-text.js';
import { requestCache } from './cache-request.js';
import { command, type Command } from './command.js';

const none = '–';
const exitUnknown = 3;
const exitUncertain = 4;

export const resolve: Command = command({
  words: ['resolve'],
  operands: '<path>',
  help: 'Show which logical cluster a path or a name leads to, and on which shard',
  options: operatorOptions,
  exitCodes: {
    [exitUnknown]: 'the path is unknown: no shard has it',
    [exitUncertain]: 'the path was not found but may exist, is in dispute, or belongs to several logical clusters',
  },
  run: async ({ operands: [path = ''], options }, { print, clock }) => {
    if (path === '') throw new SettingsError(['a path is needed, such as root:org:team, user:alice or the name of a logical cluster']);
    const text = await requestCache({ clock }, options, { method: 'GET', path: resolveTarget(path) });
    const resolved = parsePathAnswer(text);
    print(options.output === 'json' ? `${text.trimEnd()}\n` : `${formatResolved(path, resolved)}\n`);
    return exitCodeOf(resolved);
  },
});

function exitCodeOf({ kind }: ResolvedPath): number {
  if (kind === 'unknown') return exitUnknown;
  return kind === 'uncertain' || kind === 'disputed' || kind === 'ambiguous' ? exitUncertain : exitCodes.done;
}

function formatResolved(asked: string, resolved: ResolvedPath): string {
  switch (resolved.kind) {
    case 'cluster': {
      const { shard, cluster, path, unavailable, freshness } = resolved;
      return alignedRows([
        ['SHARD', 'CLUSTER', 'PATH', 'AVAILABLE', 'ENTRIES'],
        [shard, cluster, path ?? none, yesOrNo(!unavailable), formatFreshness(freshness)],
      ]);
    }
    case 'mount': {
      const { url, unavailable, freshness } = resolved;
      return alignedRows([
        ['MOUNTED AT', 'AVAILABLE', 'ENTRIES'],
        [url, yesOrNo(!unavailable), formatFreshness(freshness)],
      ]);
    }
    case 'unknown':
      return `${JSON.stringify(asked)} is unknown: no shard has it.`;
    case 'uncertain':
      return `${JSON.stringify(asked)} was not found but may exist: ${lackingOf(resolved.shards)}.`;
    case 'disputed': {
      const { cluster, shards, expected } = resolved;
      const said = expected === undefined ? 'no Workspace says where it is' : `its Workspace says that it is on ${expected}`;
      return `${JSON.stringify(asked)} is in dispute: ${cluster} is claimed by ${shards.join(', ')}, and ${said}.`;
    }
    case 'ambiguous':
      return `${JSON.stringify(asked)} is the path of several logical clusters without a Workspace: ${resolved.clusters.join(', ')}.`;
    default:
      return unreachable(resolved);
  }
}

function lackingOf(shards: readonly string[]): string {
  if (shards.length === 0) return 'the cache does not know every shard at present';
  return `not all path entries of ${shards.join(', ')} are here; see \`strata status\`, and whether their agents run with --push-paths`;
}

function yesOrNo(is: boolean): string {
  return is ? 'yes' : 'no';
}
