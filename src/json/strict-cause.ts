/** Why a member is not accepted in a strict write, and warned of in another, in Kubernetes' words. Bounds: `pathCharactersMax` of its path are shown. */
const pathCharactersMax = 256;

export function strictCause(flaw: 'duplicate' | 'unknown', path: string): string {
  const shown = path.length > pathCharactersMax ? `${path.slice(0, pathCharactersMax)}...` : path;
  return `${flaw} field ${JSON.stringify(shown)}`;
}
