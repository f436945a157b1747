/**
 * Why a strict write is refused, or another write gets a warning, in Kubernetes' words. Shows at
 * most `pathCharactersMax` of a path.
 */
const pathCharactersMax = 256;

export function strictCause(flaw: 'duplicate' | 'unknown', path: string): string {
  const shown = path.length > pathCharactersMax ? `${path.slice(0, pathCharactersMax)}...` : path;
  return `${flaw} field ${JSON.stringify(shown)}`;
}
