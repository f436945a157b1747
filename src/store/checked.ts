/** The result of one step of a check. `looked`: how many rows or keys it read. */
export type Checked = Readonly<{ what: string; looked: number; problems: readonly string[] }>;

/** A step reports at most this many problems, and does not count the rest. */
export const problemsMax = 20;
