/** Which values match: one of `allowed`, where that is given, and none that is `banned`. */
export type ValueRule = Readonly<{ allowed: ReadonlySet<string> | undefined; banned: ReadonlySet<string> }>;

export function meetsValueRule({ allowed, banned }: ValueRule, value: string): boolean {
  return (allowed === undefined || allowed.has(value)) && !banned.has(value);
}
