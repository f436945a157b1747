/**
 * Times as Kubernetes writes them: RFC 3339, whole seconds, `Z`. Go reads fractions and offsets too and nothing else. One
 * time it cannot read makes a typed informer drop the whole list, so none may be stored.
 */
const pattern = /^(\d{4})-(\d{2})-(\d{2})T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d+)?(?:Z|[-+](?:[01]\d|2[0-3]):[0-5]\d)$/;
const secondsEnd = 'YYYY-MM-DDThh:mm:ss'.length;

export function formatTimestamp(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, secondsEnd)}Z`;
}

export function isTimestamp(text: string): boolean {
  const [, year, month, day] = pattern.exec(text) ?? [];
  if (day === undefined) return false;
  // Date makes 3 March of 31 February; Go refuses it.
  const date = new Date(Date.UTC(Number(year), Number(month) - 1, Number(day)));
  return date.getUTCMonth() + 1 === Number(month) && date.getUTCDate() === Number(day);
}
