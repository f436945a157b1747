/** What one step of a check has looked at, and what it found wrong. */
export type Checked = Readonly<{ what: string; looked: number; problems: readonly string[] }>;

/** What one step names; the rest is counted by nobody. */
export const problemsMax = 20;
