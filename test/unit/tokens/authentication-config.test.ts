/**
 * Parsing of an AuthenticationConfiguration. Finds one that is accepted although a part of it would
 * be ignored.
 */
import { test } from '../../support/test.js';
import { parseAuthenticationConfig } from '../../../src/tokens/authentication-config.js';

const username = { claim: 'sub', prefix: 'oidc:' };
const issuer = { url: 'https://issuer/realm', audiences: ['kcp'] };
const jwt = { issuer, claimMappings: { username } };
const config = { apiVersion: 'apiserver.config.k8s.io/v1beta1', kind: 'AuthenticationConfiguration', jwt: [jwt] };

test('issuers are read with the mappings from their claims to a caller', (t) => {
  const second = {
    issuer: {
      url: 'https://other',
      discoveryURL: 'https://inside/config',
      certificateAuthority: 'PEM',
      audiences: ['a', 'b'],
      audienceMatchPolicy: 'MatchAny',
    },
    claimMappings: { username: { claim: 'email', prefix: '' }, groups: { claim: 'groups', prefix: 'g:' } },
    claimValidationRules: [{ claim: 'org', requiredValue: 'acme' }, { claim: 'tenant' }],
  };
  const { value, problems } = parseAuthenticationConfig({ ...config, jwt: [jwt, second], anonymous: { enabled: false } });

  t.deepEqual(problems, []);
  t.like(value[0], { url: 'https://issuer/realm', audiences: ['kcp'], username, groups: undefined, ca: undefined });
  t.like(value[1], {
    url: 'https://other',
    discoveryUrl: 'https://inside/config',
    ca: 'PEM',
    audiences: ['a', 'b'],
    groups: { claim: 'groups', prefix: 'g:' },
  });
  t.deepEqual(
    [...(value[1]?.required ?? [])],
    [
      ['org', 'acme'],
      ['tenant', ''],
    ],
  );
});

test('a configuration without issuers is valid', (t) => {
  t.deepEqual(parseAuthenticationConfig({ ...config, jwt: undefined }), { value: [], problems: [] });
});

const withJwt = (more: object): object => ({ ...config, jwt: [{ ...jwt, ...more }] });
const refused: readonly (readonly [value: unknown, path: string, message: RegExp])[] = [
  [undefined, '', /must be a mapping/],
  [{ ...config, apiVersion: 'apiserver.config.k8s.io/v2' }, 'apiVersion', /must be/],
  [{ ...config, kind: 'Config' }, 'kind', /must be/],
  [{ ...config, jwts: [] }, 'jwts', /is not a key here/],
  [{ ...config, jwt: {} }, 'jwt', /must be a list/],
  [
    { ...config, jwt: Array.from({ length: 65 }, (_, i) => ({ ...jwt, issuer: { ...issuer, url: `https://${i}` } })) },
    'jwt',
    /at most 64 are allowed/,
  ],
  [{ ...config, jwt: [jwt, jwt] }, 'jwt.1.issuer.url', /is there twice/],
  [{ ...config, anonymous: { enabled: true } }, 'anonymous.enabled', /must be false/],
  [{ ...config, anonymous: { enabled: 'true' } }, 'anonymous.enabled', /must be false/],
  [withJwt({ issuer: { ...issuer, url: 'https://is suer' } }), 'jwt.0.issuer.url', /https/],
  [withJwt({ claimMappings: { username, groups: { prefix: 'g:' } } }), 'jwt.0.claimMappings.groups.claim', /must be given/],
  [withJwt({ issuer: { ...issuer, url: 'http://issuer' } }), 'jwt.0.issuer.url', /https/],
  [withJwt({ issuer: { ...issuer, url: undefined } }), 'jwt.0.issuer.url', /must be given/],
  [withJwt({ issuer: { ...issuer, discoveryURL: 'https://a#b' } }), 'jwt.0.issuer.discoveryURL', /https/],
  [withJwt({ issuer: { ...issuer, audiences: [] } }), 'jwt.0.issuer.audiences', /at least one/],
  [withJwt({ issuer: { ...issuer, audiences: ['a', 'b'] } }), 'jwt.0.issuer.audienceMatchPolicy', /MatchAny/],
  [withJwt({ issuer: { ...issuer, audienceMatchPolicy: 'MatchAll' } }), 'jwt.0.issuer.audienceMatchPolicy', /MatchAny/],
  [withJwt({ issuer: { ...issuer, egressSelectorType: 'cluster' } }), 'jwt.0.issuer.egressSelectorType', /not supported/],
  [withJwt({ claimMappings: {} }), 'jwt.0.claimMappings.username.claim', /must be given/],
  [withJwt({ claimMappings: { username: { claim: 'sub' } } }), 'jwt.0.claimMappings.username.prefix', /must be given beside a claim/],
  [withJwt({ claimMappings: { username: { expression: 'claims.sub' } } }), 'jwt.0.claimMappings.username.expression', /CEL/],
  [withJwt({ claimMappings: { username, groups: { expression: '[]' } } }), 'jwt.0.claimMappings.groups.expression', /CEL/],
  [withJwt({ claimMappings: { username, extra: [{ key: 'a/b', valueExpression: '""' }] } }), 'jwt.0.claimMappings.extra', /CEL/],
  [withJwt({ claimMappings: { username, uid: { claim: 'uid' } } }), 'jwt.0.claimMappings.uid', /not supported/],
  [withJwt({ claimValidationRules: [{ expression: 'true' }] }), 'jwt.0.claimValidationRules.0.expression', /CEL/],
  [withJwt({ claimValidationRules: [{ claim: 'a', requiredValue: 1 }] }), 'jwt.0.claimValidationRules.0.requiredValue', /string/],
  [withJwt({ claimValidationRules: [{ claim: 'a' }, { claim: 'a' }] }), 'jwt.0.claimValidationRules.1.claim', /twice/],
  [withJwt({ userValidationRules: [{ expression: 'true' }] }), 'jwt.0.userValidationRules', /CEL/],
  [withJwt({ userValidationRules: {} }), 'jwt.0.userValidationRules', /list/],
];

for (const [i, [value, path, message]] of refused.entries())
  test(`a configuration is refused for a key that would be ignored, at ${path === '' ? 'the top' : path} (${i + 1})`, (t) => {
    const { problems } = parseAuthenticationConfig(value);
    const found = problems.find((problem) => problem.path.join('.') === path);
    t.regex(found?.message ?? JSON.stringify(problems), message);
  });
