/**
 * Tokens that a webhook checks. Each token is sent in a TokenReview of Kubernetes
 * (authentication.k8s.io). The answer is cached for `cacheTtlMs`, whether the webhook knew the
 * token or not. A failed request is not cached.
 */
import { createHash } from 'node:crypto';
import { isObject, membersOf, type Members } from '../domain/base/members.js';
import type { Clock } from '../domain/ports.js';
import { InvalidToken, type TokenReader, type TokenUser } from './token-user.js';

type Parts = Readonly<{ clock: Clock; ask: (review: string) => Promise<Members> }>;
type Options = Readonly<{ version: 'v1' | 'v1beta1'; cacheTtlMs: number }>;
type Kept = Readonly<{ answer: Promise<TokenUser | undefined>; untilMs: number }>;

/** One answer more removes the oldest. */
const cachedAnswersMax = 4_096;

export class WebhookTokens implements TokenReader {
  readonly #parts: Parts;
  readonly #options: Options;
  /** Keyed by the hash of the token, the oldest first. */
  readonly #kept = new Map<string, Kept>();

  constructor(parts: Parts, options: Options) {
    this.#parts = parts;
    this.#options = options;
  }

  read(token: string): Promise<TokenUser | undefined> {
    const { clock } = this.#parts;
    const hash = createHash('sha256').update(token).digest('base64');
    const known = this.#kept.get(hash);
    if (known !== undefined && clock.now() < known.untilMs) return known.answer;
    const answer = this.#ask(token);
    this.#kept.delete(hash);
    this.#kept.set(hash, { answer, untilMs: clock.now() + this.#options.cacheTtlMs });
    answer.catch(() => this.#kept.delete(hash));
    for (const oldest of this.#kept.keys()) {
      if (this.#kept.size <= cachedAnswersMax) break;
      this.#kept.delete(oldest);
    }
    return answer;
  }

  async #ask(token: string): Promise<TokenUser | undefined> {
    const apiVersion = `authentication.k8s.io/${this.#options.version}`;
    const review = JSON.stringify({ apiVersion, kind: 'TokenReview', metadata: { creationTimestamp: null }, spec: { token } });
    const answer = await this.#parts.ask(review).catch((error: Error) => {
      throw new InvalidToken(`the webhook cannot be asked: ${error.message}`);
    });
    if (answer['apiVersion'] !== apiVersion || answer['kind'] !== 'TokenReview')
      throw new InvalidToken('the webhook did not answer with a TokenReview');
    const { authenticated, user } = membersOf(answer['status']);
    return authenticated === true ? userOf(membersOf(user)) : undefined;
  }
}

function userOf({ username, groups = [], extra = {} }: Members): TokenUser {
  if (typeof username !== 'string' || username === '') throw new InvalidToken('the webhook names no user');
  if (!isTexts(groups) || !isObject(extra) || !Object.values(extra).every(isTexts))
    throw new InvalidToken('the webhook answered with groups or extra that are not lists of strings');
  return { user: username, groups, extra: extra as Record<string, readonly string[]> };
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((each) => typeof each === 'string');
}
