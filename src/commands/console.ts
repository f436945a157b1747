/**
 * `strata console`: prints a link to the console of a cache, for a browser without a client
 * certificate.
 */
import { operatorOptions } from '../config/options/command-options.js';
import { formatDuration } from '../config/options/quantity.js';
import { answered, requestOver } from './cache-request.js';
import { openCacheAccess } from './cache-access.js';
import { command, type Command } from './command.js';
import { numberOf, recordOf, textOf } from './members.js';

export const consoleLink: Command = command({
  words: ['console'],
  operands: '',
  help: 'Print a link to the console of a cache, a page that shows it in the browser',
  options: operatorOptions,
  run: async ({ options }, { print, clock }) => {
    const access = await openCacheAccess(options);
    const answer = await requestOver({ clock }, access, { method: 'POST', path: '/console/links' });
    const members = recordOf(JSON.parse(answer));
    const [url, expiresInMs] = [new URL(textOf(members['path']), access.cache).href, numberOf(members['expiresInMs'])];
    const good = formatDuration(expiresInMs);
    const sentence = `The link works once, within ${good}. Its session lasts an hour and may read what this certificate may read.`;
    print(answered(options, JSON.stringify({ url, expiresInMs }), `${url}\n\n${sentence}`));
  },
});
