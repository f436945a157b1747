/**
 * Runs the mixer as a command, against a server that others use meanwhile:
 *
 *   node build/test/support/hostile/mixer-main.js --url https://127.0.0.1:6443 --cert amber.crt
 *     --key amber.key --seconds 60 --seed 1 [--lanes 4] [--quiet]
 *
 * Without --cert all clients are anonymous. It ends after `--seconds`, or at once on SIGTERM or
 * SIGINT.
 */
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { mix } from './mixer.js';

const { values } = parseArgs({
  options: {
    url: { type: 'string' },
    cert: { type: 'string' },
    key: { type: 'string' },
    seconds: { type: 'string', default: '60' },
    seed: { type: 'string', default: '1' },
    lanes: { type: 'string', default: '4' },
    quiet: { type: 'boolean', default: false },
  },
});
const { url, cert, key } = values;
if (url === undefined || (cert === undefined) !== (key === undefined)) {
  process.stderr.write(
    'usage: mixer-main.js --url https://HOST:PORT [--cert FILE --key FILE] [--seconds 60] [--seed 1] [--lanes 4] [--quiet]\n',
  );
  process.exit(2);
}

const { hostname, port } = new URL(url);
const as = cert === undefined || key === undefined ? null : { certificate: readFileSync(cert, 'utf8'), key: readFileSync(key, 'utf8') };
const stop = new AbortController();
for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => stop.abort());
setTimeout(() => stop.abort(), Number(values.seconds) * 1000);

const ran = await mix(
  {
    host: hostname,
    port: Number(port || '443'),
    as,
    seed: Number(values.seed),
    lanes: Number(values.lanes),
    ...(values.quiet ? {} : { send: (line: string) => process.stdout.write(`${line}\n`) }),
  },
  stop.signal,
);
process.stdout.write(`seed ${values.seed}: ${JSON.stringify(ran)}\n`);
process.exit(0);
