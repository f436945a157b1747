import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from '../../support/test.js';
import { StrataProcess } from '../../support/strata-process.js';
import { TestAuthority } from '../../support/test-authority.js';
import { aServer } from '../../support/test-server.js';

test('without a client CA everybody is anonymous, whatever authorities the machine trusts', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'strata-corporate-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  const corporate = new TestAuthority(folder);
  const master = corporate.issue({ user: 'someone', groups: ['system:masters'] });

  await using server = await StrataProcess.start({
    flags: ['--client-ca-file=', '--allow-no-client-ca'],
    environment: { NODE_EXTRA_CA_CERTS: corporate.certificateFile },
  });

  t.is((await server.client({ as: master }).raw('GET', '/services/cache/status')).status, 403);
});

test('without a client CA, and without the flag that allows that, the server is not ready, and /readyz and the log say why', async (t) => {
  const reason = 'everybody is anonymous and refused: give --client-ca-file, or --allow-no-client-ca if that is meant';
  const server = await aServer(t, { flags: { 'client-ca-file': '' } });
  const client = server.client({ as: null });

  const answer = await client.raw('GET', '/readyz?verbose');

  t.is(answer.status, 500);
  t.true(answer.text.includes(`[-]client-ca failed: ${reason}\n`), answer.text);
  t.true(answer.text.includes('[+]store ok'));
  t.is((await client.raw('GET', '/livez')).status, 200);
  t.deepEqual(
    server.logged.filter(({ event }) => event === 'health.failed').map(({ fields }) => fields),
    [{ endpoint: 'readyz', name: 'client-ca', reason }],
  );
  const meant = await aServer(t, { flags: { 'client-ca-file': '', 'allow-no-client-ca': 'true' } });
  t.is((await meant.client({ as: null }).raw('GET', '/readyz')).status, 200);
});

test('polling a server that is not ready does not fill its log', async (t) => {
  const server = await aServer(t, { flags: { 'client-ca-file': '' } });
  const client = server.client({ as: null, http2: true });

  for (let polled = 0; polled < 40; polled += 1)
    await Promise.all(Array.from({ length: 10 }, () => client.raw('GET', '/readyz?verbose&exclude=store')));

  const lines = server.logged.filter(({ event }) => event === 'health.failed');
  t.true(lines.length <= 3, `${lines.length} lines`);
});
