/**
 * `strata console`: prints a link to the console of a cache, for a browser without a client
 * certificate.
 */
import { operatorOptions } from '../config/options/command-options.js';
import { formatDuration } from '../config/options/quantity.js';
import { number, object, text } from '../domain/schema.js';
import { answered, requestOver } from './cache-request.js';
import { openCacheAccess } from './cache-access.js';
import { command, type Command } from './command.js';

const link = object({ path: text, expiresInMs: number });

export const consoleLink: Command = command({
  words: ['console'],
  operands: '',
  help: 'Print a link to the console of a cache, a page that shows it in the browser',
  options: operatorOptions,
  run: async ({ options }, { print, clock }) => {
    const access = await openCacheAccess(options);
    const answer = await requestOver({ clock }, access, { method: 'POST', path: '/console/links' });
    const { path, expiresInMs } = link(JSON.parse(answer));
    const url = new URL(path, access.cache).href;
    const good = formatDuration(expiresInMs);
    const sentence = `The link works once, within ${good}. Its session lasts an hour and may read what this certificate may read.`;
    print(answered(options, JSON.stringify({ url, expiresInMs }), `${url}\n\n${sentence}`));
  },
});
