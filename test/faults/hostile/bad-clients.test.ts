/**
 * Finds a server that a bad client ends, a watch that stays when that client has gone, and an error
 * in the log.
 */
import { test } from '../../support/test.js';
import { seeded } from '../../support/crash/random.js';
import { aPath, anApiExport } from '../../support/objects.js';
import { TestServer } from '../../support/test-server.js';
import { badClients, type BadClient } from '../../support/hostile/bad-clients.js';

const turnMs = 400;
const starting = (async () => {
  const server = await TestServer.start({
    flags: { 'headers-timeout': '500ms', 'request-timeout': '2s', 'ping-interval': '500ms', 'pong-timeout': '1s' },
  });
  await server.client().create(aPath(), anApiExport());
  return { server, amber: server.authority.issue({ user: 'amber', groups: ['strata'], uris: ['strata://shard/amber'] }) };
})();

test.after.always(async () => (await starting).server.close());

for (const [name, badClient] of Object.entries(badClients) as [string, BadClient][]) {
  test.serial(`${name}, anonymously and as a shard: the server goes on serving`, async (t) => {
    const { server, amber } = await starting;
    for (const as of [null, amber]) {
      await badClient({ port: server.port, as }, seeded(1), AbortSignal.timeout(turnMs));
      t.is((await server.client().list(aPath({ shard: '*', cluster: '*' }))).items.length, 1);
    }

    await server.untilNoWatch(10_000);

    t.deepEqual(
      server.logged.filter(({ level }) => level === 'error'),
      [],
    );
  });
}
