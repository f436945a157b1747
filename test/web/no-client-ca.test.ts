import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { StrataProcess } from '../support/strata-process.js';
import { TestAuthority } from '../support/test-authority.js';

test('without a CA for clients everybody is anonymous, whatever authorities the machine trusts', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'strata-corporate-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  const corporate = await TestAuthority.create(folder);
  const master = await corporate.issue({ user: 'someone', groups: ['system:masters'] });

  await using server = await StrataProcess.start({
    flags: ['--client-ca-file='],
    environment: { NODE_EXTRA_CA_CERTS: corporate.certificateFile },
  });

  t.is((await server.client({ as: master }).raw('GET', '/services/cache/status')).status, 403);
});
