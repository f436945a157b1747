import type { Mutation } from '../../domain/mutation.js';
import type { Push } from '../../domain/push.js';

/** Pushes that may take more than one commit. */
export type Sweeping = Extract<Push, { kind: 'end' | 'clear' | 'drop' }>;

/** What a batch is made of. `resume`: the same sweep once more, because an earlier commit did not finish that walk. */
export type Asked = Mutation | Push | Readonly<{ kind: 'resume'; push: Sweeping; walk: number }>;
