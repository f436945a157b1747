import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { connect, createServer, type ConnectionOptions, type TLSSocket } from 'node:tls';
import type { ExecutionContext } from 'ava';
import { test } from '../../support/test.js';
import { Authority, type CertificateAndKey } from '../../../src/certificates/authority.js';
import { callerOf } from '../../../src/certificates/caller-from-certificate.js';
import { anonymous, callerAt, isMaster, type Caller } from '../../../src/domain/caller.js';
import { parseShardName } from '../../../src/domain/shard.js';

const clock = { now: () => Date.now(), wallMs: () => Date.now(), after: () => () => {} };
const validityDays = 2;

/**
 * A server that asks for a client certificate and also accepts connections without one, as Strata's
 * does.
 */
async function serverOf(
  t: ExecutionContext,
  authority: Authority,
): Promise<(options?: Partial<ConnectionOptions>) => Promise<{ caller: Caller; socket: TLSSocket; session: Buffer | undefined }>> {
  const serving = await authority.issueServing({ names: ['localhost'], validityDays });
  const server = createServer({
    cert: serving.certificatePem,
    key: serving.keyPem,
    ca: authority.certificatePem,
    requestCert: true,
    rejectUnauthorized: false,
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.close());
  const { port } = server.address() as AddressInfo;

  return async (options = {}) => {
    const accepted = once(server, 'secureConnection') as Promise<[TLSSocket]>;
    const client = connect({ port, host: '127.0.0.1', servername: 'localhost', ca: authority.certificatePem, ...options });
    const session = once(client, 'session') as Promise<[Buffer]>;
    const [socket] = await accepted;
    socket.end('.');
    client.resume();
    const caller = callerOf(socket);
    const [ticket] = await Promise.race([session, once(client, 'close').then((): [undefined] => [undefined])]);
    t.teardown(() => client.destroy());
    return { caller, socket, session: ticket };
  };
}

const asClient = ({ certificatePem, keyPem }: CertificateAndKey): Partial<ConnectionOptions> => ({ cert: certificatePem, key: keyPem });
const named = ({ user, groups }: Caller): Caller => ({ user, groups });
const newAuthority = (name: string): Promise<Authority> => Authority.create({ clock }, { name, validityDays });

test('a certificate of the trusted CA names its caller with every group', async (t) => {
  const authority = await newAuthority('amber');
  const dial = await serverOf(t, authority);

  const { caller } = await dial(
    asClient(await authority.issueClient({ user: 'cache-client', groups: ['first', 'system:masters', 'a,O=b'], validityDays })),
  );

  t.deepEqual(named(caller), { user: 'cache-client', groups: ['first', 'system:masters', 'a,O=b'] });
  t.true(isMaster(caller));
});

test('a caller without a certificate is anonymous, also in a resumed session', async (t) => {
  const dial = await serverOf(t, await newAuthority('amber'));

  const first = await dial();
  const second = await dial({ session: first.session });

  t.is(first.caller, anonymous);
  t.true(second.socket.isSessionReused());
  t.is(second.caller, anonymous);
});

test('a certificate that another CA signed names nobody, even if it has a trusted name', async (t) => {
  const dial = await serverOf(t, await newAuthority('amber'));
  const impostor = await newAuthority('amber');

  const { caller } = await dial(asClient(await impostor.issueClient({ user: 'cache-client', groups: ['system:masters'], validityDays })));

  t.is(caller, anonymous);
});

test('an expired certificate names nobody', async (t) => {
  const authority = await newAuthority('amber');
  const dial = await serverOf(t, authority);

  const { caller } = await dial(
    asClient(await authority.issueClient({ user: 'cache-client', groups: ['system:masters'], validityDays: -0.01 })),
  );

  t.is(caller, anonymous);
});

test('a serving certificate of the trusted CA names nobody', async (t) => {
  const authority = await newAuthority('amber');
  const dial = await serverOf(t, authority);

  const { caller } = await dial(asClient(await authority.issueServing({ names: ['cache-client'], validityDays })));

  t.is(caller, anonymous);
});

test('a certificate names its caller until it expires, and nobody from then on', async (t) => {
  const authority = await newAuthority('amber');
  const dial = await serverOf(t, authority);
  const issued = await authority.issueClient({ user: 'cache-client', groups: ['system:masters'], validityDays });

  const { caller } = await dial(asClient(issued));

  const untilMs = Date.parse(new X509Certificate(issued.certificatePem).validTo);
  t.is(caller.validUntilMs, untilMs);
  t.is(callerAt(caller, untilMs), caller);
  t.is(callerAt(caller, untilMs + 1), anonymous);
  t.is(callerAt(anonymous, untilMs + 1), anonymous);
});

test('a certificate names nobody if it is from another CA, expired, or not for a client', async (t) => {
  const authority = await newAuthority('amber');
  const dial = await serverOf(t, authority);
  const speaker = { user: 'amber', groups: ['strata'], speaksFor: { kind: 'shard', shard: parseShardName('amber')! } } as const;

  const [right, foreign, expired, serving] = await Promise.all([
    authority.issueClient({ ...speaker, validityDays }),
    newAuthority('amber').then((impostor) => impostor.issueClient({ ...speaker, validityDays })),
    authority.issueClient({ ...speaker, validityDays: -0.01 }),
    authority.issueServing({ names: ['amber'], validityDays }),
  ]);

  t.deepEqual((await dial(asClient(right))).caller.speaksFor, { kind: 'shard', shard: parseShardName('amber')! });
  for (const wrong of [foreign, expired, serving]) t.is((await dial(asClient(wrong))).caller, anonymous);
});
