/** The result of one step of a check. `examined`: how many rows or keys it read. */
export type CheckResult = Readonly<{ what: string; examined: number; problems: readonly string[] }>;

/** A step reports at most this many problems, and does not count the rest. */
export const problemsMax = 20;
