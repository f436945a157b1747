import { test } from '../../support/test.js';
import { isTrue, parseResourcePath, verbOf, type Verb } from '../../../src/web/kube/kube-request.js';

function shown(path: string): string {
  const found = parseResourcePath(path.split('/'));
  if (found === undefined) return 'none';
  const { group, version, resource, identity, namespace, name, subresource, forcedWatch } = found;
  const parts = [
    `${group}/${version}`,
    resource,
    identity === undefined ? '' : `identity "${identity}"`,
    namespace === undefined ? '' : `in ${namespace}`,
    name ?? '',
    subresource === undefined ? '' : `sub ${subresource}`,
    forcedWatch ? 'watched' : '',
  ];
  return parts.filter((part) => part !== '').join(' ');
}

for (const [path, expected] of [
  ['apis/g/v1/things', 'g/v1 things'],
  ['apis/g/v1/things/one', 'g/v1 things one'],
  ['apis/g/v1/things/one/status', 'g/v1 things one sub status'],
  ['apis/g/v1/things/one/status/more', 'none'],
  ['apis/g/v1/namespaces/ns/things', 'g/v1 things in ns'],
  ['apis/g/v1/namespaces/ns/things/one', 'g/v1 things in ns one'],
  ['apis/g/v1/namespaces', 'g/v1 namespaces'],
  ['apis/g/v1/namespaces/ns', 'g/v1 namespaces ns'],
  ['apis/g/v1/namespaces/ns/status', 'g/v1 namespaces ns sub status'],
  ['apis/g/v1/namespaces/ns/finalize', 'g/v1 namespaces ns sub finalize'],
  ['apis/g/v1/namespaces/ns/status/one', 'none'],
  ['apis/g/v1/namespaces/ns/Status', 'g/v1 Status in ns'],
  ['apis/g/v1/namespaces/ns/status:hash', 'g/v1 status identity "hash" in ns'],
  ['apis/g/v1/status/one', 'g/v1 status one'],
  ['api/v1/namespaces/ns/finalize', '/v1 namespaces ns sub finalize'],
  ['apis/g/v1/watch/namespaces/ns/status', 'g/v1 namespaces ns sub status watched'],
  ['apis/g/v1/things:hash', 'g/v1 things identity "hash"'],
  ['apis/g/v1/things:hash/one', 'g/v1 things identity "hash" one'],
  ['apis/g/v1/things:', 'g/v1 things identity ""'],
  ['apis/g/v1/things:a:b', 'g/v1 things identity "a:b"'],
  ['api/v1/configmaps', '/v1 configmaps'],
  ['apis/core/v1/configmaps:hash', '/v1 configmaps identity "hash"'],
  ['apis/g/v1/watch/things', 'g/v1 things watched'],
  ['apis/g/v1/watch/things/one', 'g/v1 things one watched'],
  ['apis/g/v1/watch/namespaces/ns/things', 'g/v1 things in ns watched'],
  ['apis/g/v1/watch', 'g/v1 watch'],
  ['apis/g/v1', 'none'],
  ['apis/g', 'none'],
  ['apis', 'none'],
  ['api/v1', 'none'],
  ['elsewhere/g/v1/things', 'none'],
  ['', 'none'],
] satisfies [string, string][]) {
  test(`${path === '' ? 'nothing' : path} names: ${expected}`, (t) => {
    t.is(shown(path), expected);
  });
}

for (const [method, path, query, expected] of [
  ['GET', 'apis/g/v1/things', '', 'list'],
  ['GET', 'apis/g/v1/things', 'watch', 'watch'],
  ['GET', 'apis/g/v1/things', 'watch=true', 'watch'],
  ['GET', 'apis/g/v1/things', 'watch=junk', 'watch'],
  ['GET', 'apis/g/v1/things', 'watch=0', 'list'],
  ['GET', 'apis/g/v1/things', 'watch=False', 'list'],
  ['GET', 'apis/g/v1/things/one', 'watch=true', 'get'],
  ['GET', 'apis/g/v1/watch/things/one', 'watch=false', 'watch'],
  ['HEAD', 'apis/g/v1/things/one', '', 'get'],
  ['HEAD', 'apis/g/v1/things', '', 'list'],
  ['POST', 'apis/g/v1/things', '', 'create'],
  ['POST', 'apis/g/v1/things/one', '', undefined],
  ['PUT', 'apis/g/v1/things/one', '', 'update'],
  ['PUT', 'apis/g/v1/things', '', undefined],
  ['PATCH', 'apis/g/v1/things/one', '', 'patch'],
  ['PATCH', 'apis/g/v1/things', '', undefined],
  ['DELETE', 'apis/g/v1/things/one', '', 'delete'],
  ['DELETE', 'apis/g/v1/things', '', 'deletecollection'],
  ['DELETE', 'apis/g/v1/watch/things', '', undefined],
  ['DELETE', 'apis/g/v1/watch/things/one', '', undefined],
  ['DELETE', 'apis/g/v1/watch/namespaces/x/things', '', undefined],
  ['POST', 'apis/g/v1/watch/things', '', undefined],
  ['PUT', 'apis/g/v1/watch/things/one', '', undefined],
  ['PATCH', 'apis/g/v1/watch/things/one', '', undefined],
  ['OPTIONS', 'apis/g/v1/things', '', undefined],
  ['TRACE', 'apis/g/v1/things', '', undefined],
] satisfies [string, string, string, Verb | undefined][]) {
  test(`${method} ${path}?${query} asks for ${expected ?? 'nothing that is known'}`, (t) => {
    t.is(verbOf(method, parseResourcePath(path.split('/'))!, new URLSearchParams(query)), expected);
  });
}

test('a boolean parameter is true when it is present and neither "0" nor "false"', (t) => {
  t.deepEqual([null, '', '1', 'true', 'yes', '0', 'false', 'FALSE'].map(isTrue), [false, true, true, true, true, false, false, false]);
});
