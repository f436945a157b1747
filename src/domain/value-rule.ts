/** Matches a value that is in `allowed`, if that is given, and not in `banned`. */
export type ValueRule = Readonly<{ allowed: ReadonlySet<string> | undefined; banned: ReadonlySet<string> }>;

export function meetsValueRule({ allowed, banned }: ValueRule, value: string): boolean {
  return (allowed === undefined || allowed.has(value)) && !banned.has(value);
}
