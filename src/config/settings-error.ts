/** The mistakes that the operator must correct first, one sentence each. */
export class SettingsError extends Error {
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(problems.join('\n'));
    this.name = 'SettingsError';
    this.problems = problems;
  }
}

/**
 * The problem of a file that is empty while the server runs: a writer may be replacing its content.
 */
export function emptied(file: string): string {
  return `${file}: is empty now, so the server keeps what it read before; write {} into a file that sets nothing`;
}
