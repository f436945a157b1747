/**
 * `strata identities`: the identity hashes of APIExports, and how fresh they are. Without an
 * operand it lists the exports of root, which has the exports of kcp's own types.
 */
import { operatorOptions } from '../config/options/command-options.js';
import { CacheError } from '../domain/errors.js';
import { CacheReader, defaultLookupBounds } from '../lookup/cache-reader.js';
import { exportIdentities, type ExportIdentities, type ExportIdentity } from '../lookup/export-identities.js';
import { alignedRows, formatFreshness } from './terminal-text.js';
import { openQuestions } from './cache-request.js';
import { command, type Command } from './command.js';

const none = '–';

export const identities: Command = command({
  words: ['identities'],
  operands: '[workspace]',
  help: 'List the identity hashes of the APIExports of root, or of another workspace',
  options: operatorOptions,
  run: async ({ operands: [workspace = 'root'], options }, { print, clock }) => {
    const reader = new CacheReader({ clock, connection: await openQuestions({ clock }, options) }, defaultLookupBounds);
    const found = await exportIdentities(reader, workspace);
    if (found.kind !== 'listed') throw new CacheError(found.message);
    print(options.output === 'json' ? `${JSON.stringify(found)}\n` : `${formatIdentities(workspace, found)}\n`);
  },
});

function formatIdentities(workspace: string, { identities: found, whole }: ExportIdentities): string {
  const rows = found.map((each) => [each.export, each.identity === '' ? none : each.identity, each.shard, ageOf(each)]);
  const lines = rows.length === 0 ? [] : [alignedRows([['EXPORT', 'IDENTITY', 'SHARD', 'EXPORTS OF THE SHARD'], ...rows])];
  if (rows.length === 0) lines.push(`${workspace} has no APIExport here.`);
  if (!whole) lines.push('Some APIExports may be missing here; see `strata status`.');
  return lines.join('\n');
}

function ageOf({ freshness }: ExportIdentity): string {
  return formatFreshness(freshness === undefined ? [] : [{ current: freshness.whole, lagMs: freshness.lagMs }]);
}
