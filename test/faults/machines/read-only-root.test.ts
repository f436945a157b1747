/**
 * A pod's container: nothing can be written but the volume with the data, by a user who owns nothing else. It would find whoever needs a temporary folder, a home or
 * the folder that it is started in. Needs root and Linux's namespaces; skipped aloud without them.
 */
import { spawnSync } from 'node:child_process';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from '../../support/test.js';
import { builtMain } from '../../support/project.js';
import { StrataProcess } from '../../support/strata-process.js';

const user = '10001';
/** Runs its arguments where only the folder `$0` can be written. */
const inContainer = `
  mount --make-rprivate / && mount --bind "$0" "$0"
  for each in / /tmp /var/tmp /dev/shm /run; do mount -o remount,bind,ro "$each" 2>/dev/null || [ "$each" != / ]; done
  exec setpriv --reuid ${user} --regid ${user} --clear-groups --no-new-privs --bounding-set=-all env -i PATH="$PATH" "$@"`;
/** As cache-server; the first flag names the folder. */
const program = `#!/bin/sh
data="\${1#--root-directory=}"
mkdir -p "$data" && chown ${user}:${user} "$data" && chmod 755 "$data/.."
exec unshare --mount sh -ec '${inContainer}' "$data" '${builtMain()}' cache-server "$@"
`;

test('a server starts where nothing but its data can be written, keeps an object, and has it again', async (t) => {
  t.timeout(120_000);
  const folder = await mkdtemp(join(tmpdir(), 'strata-container-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  const probe = spawnSync('unshare', ['--mount', 'sh', '-ec', inContainer, folder, builtMain(), '--version'], { encoding: 'utf8' });
  if (probe.status !== 0) {
    t.log(`SKIPPED: no container can be made here: ${probe.error?.message ?? probe.stderr.trim().slice(0, 200)}`);
    t.pass();
    return;
  }
  const script = join(folder, 'cache-server');
  await writeFile(script, program);
  await chmod(script, 0o755);
  await using server = await StrataProcess.start({ program: script });
  const client = server.client();
  const path = '/services/cache/shards/amber/clusters/acme/apis/apis.kcp.io/v1alpha2/apiexports';
  const body = { apiVersion: 'apis.kcp.io/v1alpha2', kind: 'APIExport', metadata: { name: 'one' } };

  t.is((await client.raw('POST', path, { body })).status, 201);
  await server.stop();
  await server.resume();
  t.is((await server.client().raw('GET', `${path}/one`)).status, 200);
});
