/** `strata status`: how fresh the cache's objects of each shard are. */
import { statusOptions } from '../config/options/command-options.js';
import { CacheError } from '../domain/errors.js';
import { pause } from '../domain/base/promises.js';
import { parseStatusReport } from '../domain/status.js';
import { requestStatus } from './cache-request.js';
import { command, type Command } from './command.js';
import { formatStatusTable } from './status-table.js';

const watchMs = 2_000;
/** Moves the cursor to the upper left and erases everything after it. */
const clear = '\x1b[H\x1b[J';

export const status: Command = command({
  words: ['status'],
  operands: '',
  help: 'Show how fresh each shard and type of a cache is',
  options: statusOptions,
  run: async ({ options }, { print, isTerminal, logStream, clock }) => {
    const show = async (): Promise<string> => {
      const text = await requestStatus({ clock }, options);
      return options.output === 'json' ? `${text.trimEnd()}\n` : formatStatusTable(parseStatusReport(text), { isTerminal });
    };
    if (!options.watch) return print(await show());
    for (;;) {
      try {
        const shown = await show();
        print(isTerminal && options.output === 'table' ? clear + shown : shown);
      } catch (error) {
        if (!(error instanceof CacheError)) throw error;
        logStream.write(`${error.message}\n`);
      }
      await pause(clock, watchMs);
    }
  },
});
