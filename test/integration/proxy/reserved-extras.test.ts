/**
 * Nobody may gain through the front door what only kcp may grant (kcp#4226): a shard that does not
 * check believes a warrant in an impersonation header.
 */
import { once } from 'node:events';
import { test } from '../../support/test.js';
import { anInstallation } from '../../support/proxy/a-front-door.js';
import { connected } from '../../support/proxy/raw-requests.js';

const warrant = 'Impersonate-Extra-authorization.kcp.io%2Fwarrant';
const value = '{"groups":["system:masters"]}';

test('a request with an extra key of kcp.io, also for a websocket, is refused before it reaches a shard, and another key passes', async (t) => {
  const { door, birch } = await anInstallation(t);
  const alice = door.authority.issue({ user: 'alice', groups: ['team'] });
  const path = '/clusters/root:org:team/echo';
  const { asked, upgrades } = birch;

  for (const http2 of [false, true])
    for (const as of [alice, door.master]) {
      const headers = { 'impersonate-user': 'puppet', [http2 ? warrant.toLowerCase() : warrant]: value };
      const refused = await door.client({ http2, as }).raw('GET', path, { headers });
      t.is(refused.status, 403);
      t.like(JSON.parse(refused.text), {
        reason: 'Forbidden',
        message: 'forbidden: impersonating the extra key "authorization.kcp.io%2fwarrant" is not allowed for the requestor',
      });
    }
  const socket = connected(door);
  socket.write(
    `GET /clusters/root:org:team/exec HTTP/1.1\r\nHost: door\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nImpersonate-User: puppet\r\n${warrant}: ${value}\r\n\r\n`,
  );
  const [answer] = (await once(socket, 'data')) as [Buffer];
  t.regex(String(answer), /^HTTP\/1\.1 403 /);
  t.is(birch.asked, asked);
  t.is(birch.upgrades, upgrades);

  const passed = await door
    .client({ as: alice })
    .raw('GET', path, { headers: { 'impersonate-user': 'puppet', 'impersonate-extra-scopes': 'a' } });
  t.is(passed.status, 200);
  t.is((JSON.parse(passed.text) as { headers: Record<string, string> }).headers['impersonate-extra-scopes'], 'a');
});
