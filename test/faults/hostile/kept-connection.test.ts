/**
 * Over HTTP/1.1 a client keeps a connection for its next request. Finds a connection that ends
 * before that is answered; the model found this with floods of 20 KiB.
 */
import { test } from '../../support/test.js';
import { collectionPath, wildcardPath } from '../../support/crash/writers.js';
import { StrataProcess } from '../../support/strata-process.js';

const rounds = 200;
const fillingBytes = 20_000;

test('a write that follows a read on a kept connection is answered', async (t) => {
  await using server = await StrataProcess.start();
  const client = server.client({ http2: false });
  const collection = collectionPath('amber', 'acme');
  const object = (round: number, resourceVersion?: string): unknown => ({
    apiVersion: 'apis.kcp.io/v1alpha2',
    kind: 'APIExport',
    metadata: { name: 'one', ...(resourceVersion === undefined ? {} : { resourceVersion }) },
    spec: { round, filling: 'x'.repeat(fillingBytes) },
  });
  let { resourceVersion } = (await client.create(collection, object(0))).metadata;
  const failures: string[] = [];

  for (let round = 1; round <= rounds; round += 1) {
    const list = await client.list(wildcardPath);
    resourceVersion = list.items[0]?.metadata.resourceVersion;
    await client
      .replace(`${collection}/one`, object(round, resourceVersion))
      .catch((error: unknown) => failures.push(`${round}: ${String(error)}`));
  }

  t.deepEqual(failures.slice(0, 3), [], `${failures.length} of ${rounds} writes were not answered`);
});
