import type { Mutation } from '../../domain/mutation.js';
import type { Push } from '../../domain/push.js';

/** Pushes that may take more than one commit. */
export type Sweeping = Extract<Push, { kind: 'end' | 'clear' }>;

/** What a batch is made of. `resume`: the same once more, for the commit before did not see it through. */
export type Asked = Mutation | Push | Readonly<{ kind: 'resume'; push: Sweeping }>;
