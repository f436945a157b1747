/**
 * A process that opens watches over one HTTP/2 connection and kills itself MS milliseconds later:
 * `node dying-client.js PORT CERT KEY MS`.
 */
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { aPath } from '../../support/objects.js';
import { RawHttp2 } from '../../support/raw-http2.js';

const [port, cert, key, ms] = process.argv.slice(2);
const as = { certificate: readFileSync(cert ?? '', 'utf8'), key: readFileSync(key ?? '', 'utf8') };
const client = await RawHttp2.open({ port: Number(port), as });
for (let i = 0; i < 100; i += 1) client.request('GET', `${aPath({ shard: '*', cluster: '*' })}?watch=true`);
await sleep(Number(ms));
process.kill(process.pid, 'SIGKILL');
