/**
 * Times as Kubernetes writes them: RFC 3339, whole seconds, `Z`. Go also reads fractions and
 * offsets, and nothing else. One time that Go cannot read makes a typed informer drop the whole
 * list, so the cache must not store any.
 */
const pattern = /^(\d{4})-(\d{2})-(\d{2})T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d+)?(?:Z|[-+](?:[01]\d|2[0-3]):[0-5]\d)$/;
const secondsEnd = 'YYYY-MM-DDThh:mm:ss'.length;

export function formatTimestamp(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, secondsEnd)}Z`;
}

export function isTimestamp(text: string): boolean {
  const [, year, month, day] = pattern.exec(text) ?? [];
  if (day === undefined) return false;
  // Date turns 31 February into 3 March; Go refuses it.
  const date = new Date(Date.UTC(Number(year), Number(month) - 1, Number(day)));
  return date.getUTCMonth() + 1 === Number(month) && date.getUTCDate() === Number(day);
}
