/**
 * HTTP/2 frames that cost their sender nothing. Finds a connection that may bring any number of
 * them.
 */
import { test } from '../../support/test.js';
import { aPath } from '../../support/objects.js';
import { encodeFields } from '../../support/hpack.js';
import { frameTypes, RawHttp2 } from '../../support/raw-http2.js';
import { aServer } from '../../support/test-server.js';

const framesMax = 200_000;
const framesAtOnce = 200;

type Flood = Readonly<{ begin?: (client: RawHttp2) => void; frame: (client: RawHttp2) => void }>;

const head = (method: string): Buffer =>
  encodeFields([
    [':method', method],
    [':scheme', 'https'],
    [':authority', 'localhost'],
    [':path', aPath()],
  ]);

/** Sends a request, and then what makes the server end it at once. */
const askThen =
  (spoil: (client: RawHttp2, id: number) => void): Flood['frame'] =>
  (client) => {
    const { id } = client.begin();
    client.headers(id, head('GET'), { ends: true });
    spoil(client, id);
    client.streams.delete(id);
  };

const floods: Readonly<Record<string, Flood>> = {
  'empty CONTINUATIONs': {
    begin: (client) => client.headers(1, head('GET'), { ends: true, endsHeaders: false }),
    frame: (client) => client.frame(frameTypes.continuation, 0, 1),
  },
  'empty DATA': {
    begin: (client) => client.headers(1, head('POST'), { ends: false }),
    frame: (client) => client.data(1, Buffer.alloc(0)),
  },
  'requests that it takes back': { frame: askThen((client, id) => client.reset(id)) },
  'requests with a window of nothing': { frame: askThen((client, id) => client.windowUpdate(id, 0)) },
  'requests with a window that is too large': { frame: askThen((client, id) => client.windowUpdate(id, 0x7fffffff)) },
};

for (const [what, { begin, frame }] of Object.entries(floods))
  for (const isNamed of [false, true])
    test(`${what} end the connection of a client ${isNamed ? 'with' : 'without'} a certificate`, async (t) => {
      const server = await aServer(t);
      const client = await RawHttp2.open({ port: server.port, as: isNamed ? server.master : null });
      t.teardown(() => client.destroy());
      await client.until(() => client.hasServerSettings, 'settings');
      begin?.(client);
      for (let sent = 0; sent < framesMax && !client.isClosed; sent += framesAtOnce) {
        client.socket.cork();
        for (let i = 0; i < framesAtOnce; i += 1) frame(client);
        client.socket.uncork();
        await new Promise(setImmediate);
      }
      await client.until(() => client.isClosed, 'the end', 30_000);
      t.is((await server.client().raw('GET', '/livez')).status, 200);
    });
