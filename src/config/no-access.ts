/**
 * Advice for an operator when the file system denies access: who owns the folder, which user the
 * process runs as, and what to change. In Kubernetes a volume belongs to root by default.
 */
import { accessSync, constants, statSync, type Stats } from 'node:fs';
import { dirname, resolve } from 'node:path';

/** A sentence to append to the error; '' if the error has another cause. `uid`: of this process. */
export function adviceOnAccess(error: unknown, uid: number | undefined): string {
  const refused = refusalIn(error);
  if (refused === undefined || uid === undefined) return '';
  const { path, owner, group, mode } = nearestThere(resolve(refused.path));
  // When `mkdir` of several folders is denied, Node reports ENOENT instead of the reason.
  const code = refused.code === 'ENOENT' ? whyNotWritable(path) : refused.code;
  if (code === 'EROFS')
    return `. The file system of ${path} is read-only: mount a volume there, or choose another directory by --root-directory or --data-directory`;
  if (code !== 'EACCES') return '';
  return (
    `. ${path} belongs to uid ${owner}, gid ${group} (mode ${mode}), and this process runs as uid ${uid}. Make uid ${uid} the owner, ` +
    "or give a group of the process access. In Kubernetes, mount a volume there and set fsGroup in the pod's securityContext"
  );
}

function refusalIn(error: unknown): Readonly<{ code: string; path: string }> | undefined {
  for (let at = error; at instanceof Error; at = at.cause) {
    const { code, path, syscall } = at as NodeJS.ErrnoException;
    if (path !== undefined && (code === 'EACCES' || code === 'EROFS' || (code === 'ENOENT' && syscall === 'mkdir'))) return { code, path };
  }
  return undefined;
}

function whyNotWritable(path: string): unknown {
  try {
    accessSync(path, constants.W_OK);
    return undefined;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code;
  }
}

/** The path, or else the nearest folder above it that this process can see. */
function nearestThere(path: string): Readonly<{ path: string; owner: number; group: number; mode: string }> {
  for (let at = path; ; at = dirname(at)) {
    const stats = statOf(at);
    if (stats !== undefined)
      return { path: at, owner: stats.uid, group: stats.gid, mode: (stats.mode & 0o7777).toString(8).padStart(4, '0') };
    if (at === dirname(at)) return { path: at, owner: 0, group: 0, mode: 'unknown' };
  }
}

function statOf(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}
