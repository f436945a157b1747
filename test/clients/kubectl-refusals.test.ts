/**
 * What a user sees when the server refuses kubectl. kubectl speaks HTTP/2. Each refusal must arrive
 * whole as its Status, also if the server sent it before it read the body. At commit e892933 a
 * reset stream replaced it.
 */
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ExecutionContext } from 'ava';
import { StrataProcess } from '../support/strata-process.js';
import { fill, smallDisk } from '../support/store/small-disk.js';
import type { Ran } from './installed.js';
import { kubectlLaws } from './kubectl-law.js';
import { Kubectl, onePlace } from './kubectl.js';

const apiExports = `${onePlace}/apis/apis.kcp.io/v1alpha2/apiexports`;
/** A refusal that races with its body is lost only in some runs. */
const rounds = 10;
/** Above the limit of a body, and far above every HTTP/2 window. */
const longText = 'x'.repeat(3_500_000);

const law = kubectlLaws({ timeoutMs: 180_000 });

law('415: a strategic merge patch of a kcp type', async (t, { kubectl }) => {
  await kubectl.ok('create', ['-f', await kubectl.file('there', apiExport('there'))]);

  for (let round = 0; round < rounds; round += 1)
    refused(
      t,
      await kubectl.run(['patch', 'apiexports', 'there', '-p', '{"spec":{"n":2}}']),
      /strategic-merge-patch\+json is not supported by apis\.kcp\.io\/v1alpha2, Kind=APIExport: .*accepted media types include: application\/json-patch\+json/,
    );
});

law('415: server-side apply', async (t, { kubectl }) => {
  const file = await kubectl.file('applied', apiExport('there', { applied: 'yes' }));

  for (let round = 0; round < rounds; round += 1)
    refused(
      t,
      await kubectl.run(['apply', '--server-side', '-f', file]),
      /Server-side apply not available on the server: .*accepted media types include/,
    );
});

law('400: a write to all shards and clusters', async (t, { kubectl, strata }) => {
  const everywhere = await Kubectl.create(strata, { at: '/services/cache/shards/*/clusters/*' });
  const file = await kubectl.file('everywhere', apiExport('everywhere'));

  for (let round = 0; round < rounds; round += 1)
    refused(
      t,
      await everywhere.run(['create', '-f', file]),
      /Error from server \(BadRequest\): .*a write needs one cluster, not all of them/,
    );
});

law('400: a server URL without a shard or a logical cluster', async (t, { kubectl, strata }) => {
  const rule = /a URL begins with \/services\/cache\/shards\/SHARD\/clusters\/CLUSTER, where \* stands for all of them/;
  const file = await kubectl.file('placeless', apiExport('placeless'));

  for (const at of ['', '/services/cache', '/clusters/root:org', '/services/cache/shards/amber']) {
    const placeless = await Kubectl.create(strata, { at });
    const commands = [
      ['get', 'apiexports'],
      ['get', 'apiexports', 'one'],
      ['create', '-f', file],
      ['auth', 'can-i', 'get', 'apiexports'],
    ];
    for (const command of commands) {
      const ran = await placeless.run(command);
      refused(t, ran, rule);
      t.regex(ran.stderr, /Error from server \(BadRequest\)/);
      t.notRegex(ran.stderr, /unknown reason/);
    }
  }
});

law('403: a shard’s certificate that writes another shard’s objects', async (t, { kubectl, strata }) => {
  const birch = strata.authority.issue({ user: 'birch', groups: ['strata'], uris: ['strata://shard/birch'] });
  const asBirch = await Kubectl.create(strata, { as: birch });
  const file = await kubectl.file('forbidden', apiExport('forbidden'));

  for (let round = 0; round < rounds; round += 1)
    refused(
      t,
      await asBirch.run(['create', '--validate=false', '-f', file]),
      /Error from server \(Forbidden\): .*User "birch" cannot create resource "apiexports" in API group "apis\.kcp\.io"/,
    );
});

law('403: a read with a certificate without any right', async (t, { strata }) => {
  const nobody = strata.authority.issue({ user: 'nobody', groups: ['people'] });
  const asNobody = await Kubectl.create(strata, { as: nobody });

  refused(
    t,
    await asNobody.run(['get', '--raw', `${apiExports}/there`]),
    /Error from server \(Forbidden\): .*User "nobody" cannot get resource/,
  );
});

law('404: an absent object, and a type that is not served', async (t, { kubectl }) => {
  const file = await kubectl.file('unserved', apiExport('unserved'));

  refused(
    t,
    await kubectl.run(['get', 'apiexports', 'absent']),
    /Error from server \(NotFound\): apiexports\.apis\.kcp\.io "absent" not found/,
  );
  for (let round = 0; round < rounds; round += 1)
    refused(
      t,
      await kubectl.run(['create', '--raw', `${onePlace}/apis/none.example/v1/things`, '-f', file]),
      /Error from server \(NotFound\): the server could not find the requested resource/,
    );
});

law('405: a PUT of a collection', async (t, { kubectl }) => {
  const file = await kubectl.file('put', apiExport('put'));

  for (let round = 0; round < rounds; round += 1)
    refused(
      t,
      await kubectl.run(['replace', '--raw', apiExports, '-f', file]),
      /Error from server \(MethodNotAllowed\): PUT is not supported on resources of kind "apiexports\.apis\.kcp\.io"/,
    );
});

law('413: an object above the limit of a body', async (t, { kubectl }) => {
  const file = await kubectl.file('long', { ...apiExport('long'), spec: { text: longText } });

  for (let round = 0; round < rounds; round += 1)
    refused(
      t,
      await kubectl.run(['create', '-f', file]),
      /Error from server \(RequestEntityTooLarge\): .*Request entity too large: limit is \d+/,
    );
});

law('a refusal sent before the body was read is shown even if the body is long', async (t, { kubectl, strata }) => {
  const everywhere = await Kubectl.create(strata, { at: '/services/cache/shards/*/clusters/*' });
  const file = await kubectl.file('long-everywhere', { ...apiExport('long'), spec: { text: longText } });

  for (let round = 0; round < rounds; round += 1)
    refused(
      t,
      await everywhere.run(['create', '-f', file]),
      /Error from server \(BadRequest\): .*a write needs one cluster, not all of them/,
    );
});

law('422: an invalid name', async (t, { kubectl }) => {
  for (const [file, name] of [
    ['invalid', 'Bad_Name'],
    ['spaced', 'Bad Name!'],
  ] as const) {
    const ran = await kubectl.run(['create', '-f', await kubectl.file(file, apiExport(name))]);

    refused(
      t,
      ran,
      new RegExp(`The APIExport "${name}" is invalid: metadata\\.name: Invalid value: "${name}": a lowercase RFC 1123 subdomain`),
    );
  }
});

law('429: with Retry-After, which kubectl obeys before it gives up', async (t) => {
  await using full = await StrataProcess.start({ flags: ['--open-watches-max=1'] });
  const kubectl = await Kubectl.create(full);
  await kubectl.ok('create', ['-f', await kubectl.file('watched', apiExport('watched'))]);
  const watching = full.client().watch(apiExports, { query: { timeoutSeconds: '120' } });
  t.is((await watching.next()).value?.type, 'ADDED');

  const ran = await kubectl.run(['get', '--raw', `${apiExports}?watch=true&timeoutSeconds=1`, '-v=6']);

  refused(t, ran, /Error from server \(TooManyRequests\): too many .*try again later/);
  t.regex(ran.stderr, /Got a Retry-After/);
  await watching.return(undefined);
});

law('503: a write while the disk is full', async (t) => {
  const disk = smallDisk(t);
  if (disk === undefined) {
    t.pass();
    return;
  }
  await using full = await StrataProcess.start({ flags: [`--data-directory=${join(disk, 'data')}`] });
  const kubectl = await Kubectl.create(full);
  const file = await kubectl.file('unwritten', { ...apiExport('unwritten'), spec: { text: longText.slice(0, 300_000) } });
  fill(disk);

  refused(t, await untilRefused(kubectl, file), /Error from server \(ServiceUnavailable\): .*the store cannot write \(SQLITE_FULL\)/);
});

/** The rest of the disk may still hold one or two objects, so this retries. */
async function untilRefused(kubectl: Kubectl, file: string): Promise<Ran> {
  for (let tried = 0; ; tried += 1) {
    const ran = await kubectl.run(['create', '-f', file]);
    if (ran.code !== 0 || tried === rounds) return ran;
    await kubectl.run(['delete', '-f', file]);
    await sleep(100);
  }
}

function refused(t: ExecutionContext, { code, stdout, stderr }: Ran, says: RegExp): void {
  t.not(code, 0, stdout.slice(-500));
  t.regex(stderr.slice(-4_000), says);
  t.notRegex(stderr, /stream error|RST_STREAM|connection reset|EOF/);
}

function apiExport(name: string, labels: Readonly<Record<string, string>> = {}): Readonly<Record<string, unknown>> {
  return { apiVersion: 'apis.kcp.io/v1alpha2', kind: 'APIExport', metadata: { name, labels }, spec: { n: 1 } };
}
