/** What a commit is asked, and what becomes of it: the words that every engine's committer shares. */
import type { Mutation } from '../domain/mutation.js';
import type { Push, PushOutcome } from '../domain/push.js';

/** Pushes that may take more than one commit. */
export type Sweeping = Extract<Push, { kind: 'end' | 'clear' | 'drop' }>;

/** What a batch is made of. `resume`: the same sweep once more, because an earlier commit did not finish that walk. */
export type Asked = Mutation | Push | Readonly<{ kind: 'resume'; push: Sweeping; walk: number }>;

/** Removed that many and is not done; the walk of that number goes on. */
export type Unfinished = Readonly<{ kind: 'partial'; removed: number; walk: number }>;

/** What became of a push so far. */
export type PushDecision = PushOutcome | Unfinished;

/** Objects deleted in one step. */
export const sweepDeletesMax = 256;
/** So many objects are little: a commit may end some hundred slices, each of which is read. */
export const littleMax = 64;
