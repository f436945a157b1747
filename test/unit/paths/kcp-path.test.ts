import { test } from '../../support/test.js';
import { homeOf, parsePathSegments } from '../../../src/paths/kcp-path.js';

test('the home of a user has the name that kcp computes for it', (t) => {
  // From kcp's own tests; the last name has a leading zero byte.
  for (const [user, home] of [
    ['', '36ks9xj4a2n61'],
    ['alice', 'v1u4alow0iv9'],
    ['bob', '2okdry95y5lkv'],
    ['user-with-dash', '1e25681jymk1l'],
    ['user:with:colons', '2bqfj6xlthg3t'],
    ['user172', '0f9mt7goyif7'],
  ] as const)
    t.is(homeOf(user), home as never);
});

test('a path consists of segments of letters, digits and hyphens; user:NAME becomes the name of a home', (t) => {
  const paths: readonly (readonly [string, readonly string[] | undefined])[] = [
    ['root', ['root']],
    ['root:org:team', ['root', 'org', 'team']],
    ['2hkmx5l3ov9dd7vw:team', ['2hkmx5l3ov9dd7vw', 'team']],
    ['user:alice', ['v1u4alow0iv9']],
    ['user:alice:team', ['v1u4alow0iv9', 'team']],
    ['user', ['user']],
    [Array.from({ length: 64 }, () => 'a').join(':'), Array.from({ length: 64 }, () => 'a')],
    ['a'.repeat(63), ['a'.repeat(63)]],
    [Array.from({ length: 65 }, () => 'a').join(':'), undefined],
    [Array.from({ length: 10_000 }, () => 'a').join(':'), undefined],
    ['a'.repeat(64), undefined],
    ['a'.repeat(3_072), undefined],
    ['', undefined],
    ['*', undefined],
    ['root:*', undefined],
    ['Root', undefined],
    ['root:..', undefined],
    ['root::org', undefined],
    ['root:', undefined],
    [':root', undefined],
    ['user:', undefined],
    ['root\u0000', undefined],
    ['root\n', undefined],
    ['root:org%2Fteam', undefined],
    ['root/org', undefined],
    ['-root', undefined],
    ['root-', undefined],
    ['ｒoot', undefined],
  ];
  for (const [text, segments] of paths) t.deepEqual(parsePathSegments(text), segments as never, JSON.stringify(text.slice(0, 80)));
});
