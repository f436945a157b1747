/**
 * A client may reset a request before its turn has come. Finds a server that begins it all the
 * same.
 */
import { aPath, anApiExport } from '../../support/objects.js';
import { RawHttp2 } from '../../support/raw-http2.js';
import { aServer } from '../../support/test-server.js';
import { test } from '../../support/test.js';

/** Fewer resets than end a connection. */
const requests = 40;

test('requests that a client resets as it sends them are not begun, and its next request is', async (t) => {
  const server = await aServer(t);
  const client = server.client();
  const names = Array.from({ length: requests }, (_, i) => `n${i}`);
  for (const name of names) await client.create(aPath(), anApiExport({ name }));
  const raw = await RawHttp2.open({ port: server.port, as: server.master });
  t.teardown(() => raw.destroy());
  await raw.until(() => raw.hasServerSettings, 'settings');

  // In one write, so that the server reads each request together with its reset.
  raw.socket.cork();
  for (const [i, name] of names.entries()) raw.reset(raw.request(i % 2 === 0 ? 'DELETE' : 'GET', aPath({ name })).id);
  raw.socket.uncork();
  const last = raw.request('DELETE', aPath({ name: names.at(-1)! }));
  await raw.until(() => last.isOver, 'the last one');

  t.is(last.status, 200);
  const { text } = await client.raw('GET', '/metrics');
  const answered = [...text.matchAll(/^strata_requests_total\{verb="(get|delete)",code="(\d+)"\} (\d+)$/gm)].map((found) =>
    found.slice(1).join(' '),
  );
  t.deepEqual(answered, ['delete 200 1']);
  const left = (await client.list(aPath())).items.map(({ metadata }) => metadata.name);
  t.deepEqual(left.toSorted(), names.slice(0, -1).toSorted());
});
