/**
 * What each resourceVersion means to each verb: none, a valid one, a future one, one of another
 * store, a compacted one.
 */
import { test } from '../../support/test.js';
import type { KubeClient, KubeStatus } from '../../support/kube-client.js';
import { aPath, anApiExport } from '../../support/objects.js';
import { shared } from '../../support/shared.js';
import { TestServer } from '../../support/test-server.js';

/**
 * One history for all tests: `one` at 1 and 3, `two` at 2, `gone` created at 4 and deleted at 5.
 */
type Known = Readonly<{ server: TestServer; client: KubeClient; at: (revision: number) => string }>;

const known = shared(
  async (): Promise<Known> => {
    const server = await TestServer.start();
    const client = server.client();
    const one = await client.create(aPath(), anApiExport());
    await client.create(aPath(), anApiExport({ name: 'two' }));
    await client.replace(aPath({ name: 'one' }), { ...one, spec: { changed: true } });
    await client.create(aPath(), anApiExport({ name: 'gone' }));
    await client.delete(aPath({ name: 'gone' }));
    const first = BigInt(one.metadata.resourceVersion ?? '');
    return { server, client, at: (revision) => String(first + BigInt(revision - 1)) };
  },
  ({ server }) => server.close(),
);

const epoch = 10n ** 10n;

/** The resourceVersions of the table, made from the server's own. */
const versions = {
  none: () => '',
  zero: () => '0',
  first: (at: Known['at']) => at(1),
  second: (at: Known['at']) => at(2),
  current: (at: Known['at']) => at(5),
  future: (at: Known['at']) => at(6),
  'foreign above': (at: Known['at']) => String(BigInt(at(2)) + epoch),
  'foreign below': (at: Known['at']) => String(BigInt(at(2)) - epoch),
  tiny: () => '1',
  huge: () => '18446744073709551615',
  junk: () => 'junk',
} satisfies Record<string, (at: Known['at']) => string>;

type Version = keyof typeof versions;

function query(version: string, more: string): string {
  return [version === '' ? '' : `resourceVersion=${version}`, more].filter((part) => part !== '').join('&');
}

const now = '200 one@3 two@2 at 5';
const tooLarge = '504 Timeout';
const expired = '410 Expired';

for (const [version, more, expected] of [
  ['none', '', now],
  ['none', 'limit=5', now],
  ['zero', '', now],
  ['zero', 'limit=5', now],
  ['zero', 'resourceVersionMatch=NotOlderThan', now],
  ['zero', 'resourceVersionMatch=Exact', '422 Invalid'],
  ['second', '', now],
  ['second', 'limit=5', '200 one@1 two@2 at 2'],
  ['second', 'resourceVersionMatch=NotOlderThan', now],
  ['second', 'resourceVersionMatch=NotOlderThan&limit=5', now],
  ['second', 'resourceVersionMatch=Exact', '200 one@1 two@2 at 2'],
  ['first', 'resourceVersionMatch=Exact', '200 one@1 at 1'],
  ['current', 'resourceVersionMatch=Exact', now],
  ['future', '', tooLarge],
  ['future', 'limit=5', tooLarge],
  ['future', 'resourceVersionMatch=NotOlderThan', tooLarge],
  ['future', 'resourceVersionMatch=Exact', tooLarge],
  ['foreign above', '', tooLarge],
  ['foreign above', 'resourceVersionMatch=Exact', tooLarge],
  ['huge', '', tooLarge],
  ['foreign below', '', now],
  ['foreign below', 'resourceVersionMatch=NotOlderThan', now],
  ['foreign below', 'resourceVersionMatch=Exact', expired],
  ['foreign below', 'limit=5', expired],
  ['tiny', '', now],
  ['tiny', 'resourceVersionMatch=Exact', expired],
  ['junk', '', '400 BadRequest'],
] satisfies [Version, string, string][]) {
  test(`a list at ${version} with ${more === '' ? 'nothing else' : more} is ${expected}`, async (t) => {
    const { client, at } = await known();

    const answer = await client.raw('GET', `${aPath()}?${query(versions[version](at), more)}`);

    t.is(shown(answer, at), expected);
    t.is(answer.headers['retry-after'], undefined);
  });
}

for (const [version, expected] of [
  ['none', '200'],
  ['zero', '200'],
  ['first', '200'],
  ['current', '200'],
  ['future', tooLarge],
  ['foreign above', tooLarge],
  ['foreign below', '200'],
  ['huge', tooLarge],
  ['junk', '400 BadRequest'],
] satisfies [Version, string][]) /* prettier-ignore */ {
  test(`a GET at ${version} is ${expected}`, async (t) => {
    const { client, at } = await known();

    const answer = await client.raw('GET', `${aPath({ name: 'one' })}?${query(versions[version](at), '')}`);

    t.is(`${answer.status} ${(JSON.parse(answer.text) as KubeStatus).reason ?? ''}`.trim(), expected);
  });
}

const standing = 'ADDED one@3, ADDED two@2';
const all = `${standing}, BOOKMARK@5!`;
const list = 'sendInitialEvents=true&resourceVersionMatch=NotOlderThan';
const without = 'sendInitialEvents=false&resourceVersionMatch=NotOlderThan';

for (const [version, more, expected] of [
  ['none', '', standing],
  ['zero', '', standing],
  ['none', list, all],
  ['zero', list, all],
  ['second', list, `${all}, DELETED gone@5`],
  ['current', list, all],
  ['future', list, 'ERROR 504 Timeout'],
  ['foreign above', list, 'ERROR 504 Timeout'],
  ['foreign below', list, all],
  ['tiny', list, all],
  ['none', without, ''],
  ['zero', without, ''],
  ['second', '', 'MODIFIED one@3, ADDED gone@4, DELETED gone@5'],
  ['second', without, 'MODIFIED one@3, ADDED gone@4, DELETED gone@5'],
  ['current', '', ''],
  ['future', '', 'ERROR 410 Expired'],
  ['future', without, 'ERROR 410 Expired'],
  ['foreign above', '', 'ERROR 410 Expired'],
  ['foreign below', '', 'ERROR 410 Expired'],
  ['huge', '', 'ERROR 410 Expired'],
  ['tiny', '', 'ERROR 410 Expired'],
] satisfies [Version, string, string][]) {
  test(`a watch at ${version} with ${more === '' ? 'nothing else' : more} sends: ${expected === '' ? 'nothing' : expected}`, async (t) => {
    const { client, at } = await known();
    const options = `allowWatchBookmarks=true&timeoutSeconds=1&${query(versions[version](at), more)}`;

    const received: string[] = [];
    for await (const { type, object } of client.watch(`${aPath()}?watch=true&${options}`)) {
      const { name = '', resourceVersion = '', annotations = {} } = object.metadata;
      const isEnd = annotations['k8s.io/initial-events-end'] === 'true';
      if (type === 'ERROR') received.push(`ERROR ${String(object['code'])} ${String(object['reason'])}`);
      else if (type !== 'BOOKMARK' || isEnd)
        received.push(`${type}${name === '' ? '' : ` ${name}`}@${revisionOf(resourceVersion, at)}${isEnd ? '!' : ''}`);
    }

    t.is(received.join(', '), expected);
  });
}

for (const [what, options] of [
  ['a junk version', 'resourceVersion=junk'],
  ['initial events without a match', 'sendInitialEvents=true'],
  ['a selector of another field', 'fieldSelector=spec.a%3Db'],
] as const) {
  test(`${what} is refused before the watch begins, as an HTTP error`, async (t) => {
    const { client } = await known();

    const answer = await client.raw('GET', `${aPath()}?watch=true&${options}`);

    t.true(answer.status === 400 || answer.status === 422);
    t.is((JSON.parse(answer.text) as KubeStatus).kind, 'Status');
  });
}

test('a version that is too large is refused with the words and causes that clients look for', async (t) => {
  const { client, at } = await known();

  const answer = await client.raw('GET', `${aPath()}?resourceVersion=${at(6)}`);

  t.deepEqual(JSON.parse(answer.text), {
    kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', reason: 'Timeout', code: 504,
    message: `Timeout: Too large resource version: ${at(6)}, current: ${at(5)}`,
    details: { causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }] },
  }); // prettier-ignore
});

function shown(answer: { status: number; text: string }, at: Known['at']): string {
  const body = JSON.parse(answer.text) as KubeStatus & { items?: { metadata: { name: string; resourceVersion: string } }[] };
  if (body.items === undefined) return `${answer.status} ${body.reason}`;
  const items = body.items.map(({ metadata }) => `${metadata.name}@${revisionOf(metadata.resourceVersion, at)}`);
  return [answer.status, ...items, 'at', revisionOf(body.metadata.resourceVersion ?? '', at)].join(' ');
}

function revisionOf(text: string, at: Known['at']): string {
  return String(BigInt(text) - BigInt(at(1)) + 1n);
}
