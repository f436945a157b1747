/**
 * A webhook that checks tokens. Finds an answer that counts too long, for another token, or though
 * it is invalid, and a webhook that is asked too often.
 */
import { test } from '../../support/test.js';
import type { Members } from '../../../src/domain/base/members.js';
import { InvalidToken } from '../../../src/tokens/token-user.js';
import { WebhookTokens } from '../../../src/tokens/webhook-tokens.js';
import { ManualClock } from '../../support/store/manual-clock.js';

const cacheTtlMs = 120_000;
type Review = Readonly<{ apiVersion: string; kind: string; spec: Readonly<{ token: string }> }>;

function review(status: unknown, more: object = {}): Members {
  return { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', status, ...more };
}

function parts(answer: (token: string) => Members | Promise<Members>) {
  const asked: Review[] = [];
  const clock = new ManualClock();
  const ask = async (text: string): Promise<Members> => {
    asked.push(JSON.parse(text) as Review);
    return answer(asked.at(-1)!.spec.token);
  };
  return { asked, clock, tokens: new WebhookTokens({ clock, ask }, { version: 'v1', cacheTtlMs }) };
}

const alice = { authenticated: true, user: { username: 'alice', groups: ['team'], extra: { 'a/b': ['c'] } } };

test('a webhook’s answer counts for its time, whether or not it knows the token, and each token has its own answer', async (t) => {
  const { asked, clock, tokens } = parts((token) => review(token === 'one' ? alice : { authenticated: false }));

  const [first, again, other] = await Promise.all(['one', 'one', 'two'].map((token) => tokens.read(token)));
  t.deepEqual(first, { user: 'alice', groups: ['team'], extra: { 'a/b': ['c'] } });
  t.is(again, first);
  t.is(other, undefined);
  t.is(asked.length, 2);
  t.like(asked[0], { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', spec: { token: 'one' } });
  clock.advance(cacheTtlMs - 1);
  await tokens.read('one');
  t.is(asked.length, 2);
  clock.advance(1);
  await tokens.read('one');
  t.is(asked.length, 3);
});

test('a webhook that cannot be reached is asked again for the next request', async (t) => {
  let isAway = true;
  const { asked, tokens } = parts(async () => {
    if (isAway) throw new Error('away');
    return review(alice);
  });

  await t.throwsAsync(tokens.read('one'), { instanceOf: InvalidToken, message: 'the webhook cannot be asked: away' });
  isAway = false;
  t.like(await tokens.read('one'), { user: 'alice' });
  t.is(asked.length, 2);
});

test('beyond the room for answers, the oldest are dropped', async (t) => {
  const { asked, tokens } = parts(() => review({ authenticated: false }));
  for (let i = 0; i < 4_097; i += 1) await tokens.read(String(i));

  await tokens.read('4096');
  t.is(asked.length, 4_097);
  await tokens.read('0');
  t.is(asked.length, 4_098);
});

const nobody: Readonly<Record<string, unknown>> = {
  'authenticated that is a text': { ...alice, authenticated: 'true' },
  'no status': undefined,
  'a list': [alice],
};
for (const [what, status] of Object.entries(nobody))
  test(`an answer with ${what} names nobody`, async (t) => {
    t.is(await parts(() => review(status)).tokens.read('one'), undefined);
  });

const refused: Readonly<Record<string, Members>> = {
  'another version': review(alice, { apiVersion: 'authentication.k8s.io/v1beta1' }),
  'another kind': review(alice, { kind: 'Status' }),
  'no name': review({ ...alice, user: {} }),
  'an empty name': review({ ...alice, user: { username: '' } }),
  'groups that are one text': review({ ...alice, user: { username: 'a', groups: 'system:masters' } }),
  'groups of numbers': review({ ...alice, user: { username: 'a', groups: [1] } }),
  'extra that is a list': review({ ...alice, user: { username: 'a', extra: ['a'] } }),
  'extra of texts': review({ ...alice, user: { username: 'a', extra: { a: 'b' } } }),
};
for (const [what, answer] of Object.entries(refused))
  test(`an answer with ${what} is refused`, async (t) => {
    await t.throwsAsync(parts(() => answer).tokens.read('one'), { instanceOf: InvalidToken });
  });
