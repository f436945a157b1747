/** `strata status`: how fresh each shard's part of a cache is. */
import { statusOptions } from '../config/command-options.js';
import { askStatus } from './ask-cache.js';
import { command, type Command } from './command.js';
import { parseStatusReport } from './parse-status-report.js';
import { formatStatusTable } from './status-table.js';

export const status: Command = command({
  words: ['status'],
  operands: '',
  help: 'Show how fresh each shard and type of a cache is',
  options: statusOptions,
  run: async ({ options }, { print, clock }) => {
    const text = await askStatus({ clock }, options);
    print(options.output === 'json' ? `${text.trimEnd()}\n` : formatStatusTable(parseStatusReport(text)));
  },
});
