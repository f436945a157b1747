import { test } from '../../support/test.js';
import { mostSpecificFirst, parseMappings, type Mapping } from '../../../src/proxy/mapping.js';
import { routeOf } from '../../../src/proxy/route.js';

const files = { backend_server_ca: 'ca.crt', proxy_client_cert: 'proxy.crt', proxy_client_key: 'proxy.key' };

function mappings(...paths: readonly string[]): readonly Mapping[] {
  const parsed = parseMappings(paths.map((path) => ({ path, backend: 'https://root:6443/base/', ...files })));
  if (parsed.kind === 'wrong') throw new Error(JSON.stringify(parsed.problems));
  return parsed.mappings.toSorted(mostSpecificFirst);
}

const usual = mappings(
  '/clusters/',
  '/services/',
  '/services/apiexport/',
  '/e2e',
  '/pattern/clusters/{cluster}/',
  '/views/{cluster}/',
  '/views/own/',
  '/views/{cluster}/deeper',
  '/named/{cluster}/api',
);

/** The route in one line: `cluster PATH REST`, `mapped MAPPING PATH`. */
function shown(target: string): string {
  const route = routeOf(target, usual);
  switch (route.kind) {
    case 'cluster':
      return `cluster ${route.path} ${route.rest}`.trim();
    case 'mapped':
      return `mapped ${route.mapping.path} ${route.path ?? '–'}${route.target === target ? '' : ' changed'}`;
    case 'redirect':
      return `redirect ${route.location}`;
    case 'local':
      return `local ${route.path}`;
    default:
      return route.kind;
  }
}

test('a request goes where kcp’s proxy sends it, by its path', (t) => {
  for (const [target, wanted] of [
    ['/clusters/root/api/v1/namespaces', 'cluster root /api/v1/namespaces'],
    ['/clusters/root', 'cluster root'],
    ['/clusters/root/', 'cluster root /'],
    ['/clusters/root?x=1', 'cluster root ?x=1'],
    ['/clusters/root:org:team/apis?x=a%20b&y', 'cluster root:org:team /apis?x=a%20b&y'],
    ['/clusters/root%3Aorg/api', 'cluster root:org /api'],
    ['/clusters/%2A/api', 'cluster * /api'],
    ['/clusters/root/..%2f..%2fclusters/other/api', 'malformed'],
    ['/clusters/root/api/%2f../x', 'malformed'],
    ['/clusters/root/api/v1/namespaces/a%2Fb', 'cluster root /api/v1/namespaces/a%2Fb'],
    ['/clusters/root/a//b?c=d//e', 'redirect /clusters/root/a/b?c=d//e'],
    ['/clusters/root/../root/api', 'redirect /clusters/root/api'],
    ['/clusters//api', 'redirect /clusters/api'],
    ['/clusters/root/./api/', 'redirect /clusters/root/api/'],
    ['//evil.example.com/clusters', 'redirect /evil.example.com/clusters'],
    ['/clusters', 'unmapped'],
    ['/clusters/', 'unmapped'],
    ['/clustersx/root', 'unmapped'],
    ['/', 'unmapped'],
    ['/api', 'unmapped'],
    ['/version', 'unmapped'],
    ['/healthz', 'unmapped'],
    ['/shards/root/clusters/root', 'unmapped'],
    ['/readyz', 'local /readyz'],
    ['/readyz?verbose', 'local /readyz'],
    ['/readyz/informer-sync', 'local /readyz/informer-sync'],
    ['/livez', 'local /livez'],
    ['/metrics', 'local /metrics'],
    ['/metricsx', 'unmapped'],
    ['/metrics/x', 'unmapped'],
    ['/livez/a/b', 'unmapped'],
    ['/metrics//x', 'redirect /metrics/x'],
    ['/readyz/../clusters/root/x', 'redirect /clusters/root/x'],
    ['/services/none', 'mapped /services –'],
    ['/services/apiexport/root/x/clusters/*/apis', 'mapped /services/apiexport –'],
    ['/services/apiexport/root/x/clusters/root:org/apis', 'mapped /services/apiexport root:org'],
    ['/services/apiexport/root/x/clusters/root%3Aorg/apis?a=/clusters/b/', 'mapped /services/apiexport root:org'],
    ['/services/apiexports', 'mapped /services –'],
    ['/servicesx', 'unmapped'],
    ['/e2e', 'mapped /e2e –'],
    ['/e2e/clusters/root:org', 'mapped /e2e root:org'],
    ['/e2e/a%2Fb/c%20d', 'mapped /e2e –'],
    ['/pattern/clusters/root:org/x', 'mapped /pattern/clusters/{cluster} root:org'],
    ['/pattern/clusters/root:org', 'mapped /pattern/clusters/{cluster} root:org'],
    ['/views/root:org/x', 'mapped /views/{cluster} root:org'],
    ['/views/root:org', 'mapped /views/{cluster} root:org'],
    ['/views/own/x', 'mapped /views/own –'],
    ['/views/owner/x', 'mapped /views/{cluster} owner'],
    ['/views/root:org/deeper/x', 'mapped /views/{cluster}/deeper root:org'],
    ['/views/root:org/deep', 'mapped /views/{cluster} root:org'],
    ['/views/*/x', 'mapped /views/{cluster} –'],
    ['/views/root:org/clusters/root:other/x', 'mapped /views/{cluster} root:org'],
    ['/views/root%2Forg/x', 'malformed'],
    ['/named/root:org/api/v1', 'mapped /named/{cluster}/api root:org'],
    ['/named/root:org/apis', 'unmapped'],
    ['/pattern/clusters', 'unmapped'],
    ['/pattern/x/root', 'unmapped'],
    ['*', 'malformed'],
    ['/\\evil.example.com//x', 'malformed'],
    ['/clusters/root/x\\..\\..\\other', 'malformed'],
    ['/clusters/root/a#b', 'malformed'],
    ['/clusters/root/a b', 'malformed'],
    ['http://evil.example.com/clusters/root', 'malformed'],
    ['/clusters/%E0%A4%A/api', 'malformed'],
    ['/clusters/%00/api', 'cluster \u0000 /api'],
    ['/clusters/root/%zz', 'malformed'],
    ['/clusters/root/%ff', 'malformed'],
    ['/clusters/root/\u00e4', 'malformed'],
    ['/clusters/root/a?b=\u00e4', 'malformed'],
    ['/clusters/root/a\u007f', 'malformed'],
  ] as const)
    t.is(shown(target), wanted, target);
});

test('encoded dots are refused, because a backend that decodes them again would read another path', (t) => {
  for (const target of [
    '/clusters/root/%2e%2e/%2e%2e/clusters/other',
    '/clusters/%2E%2e/api',
    '/clusters/root/.%2e/api',
    '/services/x/%2e%2e/y',
    '/clusters/root/%2e',
  ])
    t.is(shown(target), 'malformed', target);
  t.is(shown('/clusters/root/a%2eb'), 'cluster root /a%2eb');
});

test('a path that decodes to one below another mapping is refused, because its backend would read that one', (t) => {
  for (const target of [
    '/services/apiexport%2Froot/x/clusters/root:org/apis',
    '/services/%61piexport/root/x/clusters/root:org/apis',
    '/services%2Fapiexport/root/x',
    '/%73ervices/x',
    '/%63lusters/root/api',
    '/clusters%2Froot/api',
    '/e2%65/x',
    '/pattern%2Fclusters/root:org/x',
    '/pattern/%63lusters/root:org/x',
  ])
    t.is(shown(target), 'malformed', target);
  t.is(shown('/services/none%2Fapiexport/root'), 'mapped /services –');
});

test('a path that decodes to another logical cluster is refused, because its backend may read either', (t) => {
  for (const target of [
    '/services/apiexport/root/x%2Fclusters%2Froot:other/clusters/root:org',
    '/services/none/a%2Fclusters%2Froot/clusters/root:nope/x',
    '/services/none/a%2fclusters/root/clusters/root:nope/x',
    '/services/none/a/clusters%2Froot/x',
    '/services/none/%63lusters/root:nope/x',
    '/services/none/clusters/root%2Fx/clusters/root:nope',
    '/services/none/clusters/%2Fx',
    '/e2e/clusters/%2A%2Froot',
    '/pattern/clusters/root%2Fx/y',
  ])
    t.is(shown(target), 'malformed', target);
  t.is(shown('/services/none/clusters/%2a/x%2Fclusters%2Fb'), 'mapped /services –');
  t.is(shown('/services/none/a%2Fb/clusters/root%3Aorg/c%2Fd?e=/clusters/f'), 'mapped /services root:org');
});

test('a mapping file is read as kcp’s proxy reads it, and each error has its place', (t) => {
  const parsed = parseMappings([
    {
      path: '/clusters/',
      backend: 'https://root:6443',
      ...files,
      user_header: 'X-User',
      group_header: '',
      extra_header_prefix: 'X-Extra-',
    },
  ]);
  t.deepEqual(parsed, {
    kind: 'parsed',
    mappings: [
      {
        path: '/clusters',
        backend: { origin: 'https://root:6443', path: '' },
        caFile: 'ca.crt',
        certFile: 'proxy.crt',
        keyFile: 'proxy.key',
        identityHeaders: { user: 'x-user', group: 'x-remote-group', extraPrefix: 'x-extra-' },
      },
    ],
  });
  const problems = (value: unknown): readonly string[] => {
    const read = parseMappings(value);
    return read.kind === 'parsed' ? [] : read.problems.map(({ path, message }) => `${path.join('.')}: ${message}`);
  };
  const one = { path: '/a', backend: 'https://b', ...files };
  t.deepEqual(problems([one]), []);
  t.regex(problems('x')[0]!, /must be a list/);
  t.regex(problems([])[0]!, /must be a list/);
  t.regex(problems([{ ...one, path: 'a' }])[0]!, /^0.path: must be a path/);
  t.regex(problems([{ ...one, path: '/' }])[0]!, /^0.path: must not be \/:/);
  t.regex(problems([one, { ...one, path: '/a/' }])[0]!, /^1.path: \/a is mapped twice/);
  t.deepEqual(problems([{ ...one, path: '/a/{cluster}/b/' }]), []);
  for (const path of ['/a/{', '/a/x{y}', '/a/{rest...}', '/a b']) t.regex(problems([{ ...one, path }])[0]!, /^0.path/, path);
  for (const backend of ['http://b', 'https://user:secret@b', 'https://b?x', 'b', 7])
    t.regex(problems([{ ...one, backend }])[0]!, /^0.backend/, String(backend));
  t.regex(problems([{ ...one, proxy_client_key: undefined }])[0]!, /^0.proxy_client_key: must be given/);
  t.regex(problems([{ ...one, user_header: 'a b' }])[0]!, /^0.user_header: must be the name/);
  t.regex(problems([{ ...one, weight: 1 }])[0]!, /^0.weight: is not a key/);
  t.notRegex(JSON.stringify(problems([{ ...one, backend: 'https://user:secret@b' }])), /secret/);
});

test('of several mappings that match a path the most specific one counts, in whatever order they are listed', (t) => {
  const paths = ['/a', '/a/{cluster}', '/a/b', '/a/{cluster}/c', '/a/b/c', '/{any}/b'];
  const sorted = mappings(...paths).map(({ path }) => path);
  t.deepEqual(sorted, ['/a/b/c', '/a/b', '/a/{cluster}/c', '/a/{cluster}', '/a', '/{any}/b']);
  t.deepEqual(
    mappings(...paths.toReversed()).map(({ path }) => path),
    sorted,
  );
});
