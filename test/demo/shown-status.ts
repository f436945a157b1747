/**
 * What a demo prints of a cache's status: lines that fit the terminal, if there is one, and why a
 * cache may have refused an object although all is well.
 */

/** A policy is on one line, however long. */
const lineCharactersOfTerminal = 120;

export function clipped(line: string, isTerminal: boolean): string {
  return isTerminal && line.length > lineCharactersOfTerminal ? `${line.slice(0, lineCharactersOfTerminal)}…` : line;
}

/** Undefined if no cache refused anything. */
export function refusalsExplained(lines: readonly string[]): string | undefined {
  if (!lines.some((line) => /\d objects? refused here/.test(line))) return undefined;
  return `An object that is "refused here" came before its LogicalCluster, which says its path, and a rule of this policy asks for the path. The cache
asked for the type again ("asked to resync") once it knew the path, and has the object now. Both are counted since the link opened.`;
}
