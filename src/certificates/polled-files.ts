/**
 * Files that an operator replaces while the server runs, read every `intervalMs` and on demand. They are read and compared, because
 * a Kubernetes secret is swapped by a symbolic link that file watching loses, and a file's times may not change.
 *
 * A file that cannot be used is logged at each look and changes nothing: half a replacement is whole at the next.
 */
import type { Log } from '../diagnostics/log.js';
import type { Clock } from '../domain/ports.js';
import type { Reloadable, Reloaded } from '../domain/reloaded.js';

export type PolledFiles = Readonly<{
  /** Of the log. */
  events: Readonly<{ reloaded: string; failed: string }>;
  /** The file that the log names. */
  file: string;
  /** Reads, and uses what changed. False when nothing did; throws when it cannot be used. */
  take: () => boolean;
}>;

export function pollFiles(
  { clock, log }: Readonly<{ clock: Clock; log: Log }>,
  { events, file, take }: PolledFiles,
  intervalMs: number,
): Reloadable {
  const reload = (): Reloaded => {
    try {
      if (!take()) return { kind: 'unchanged' };
      log.info(events.reloaded, { file });
      return { kind: 'changed' };
    } catch (error) {
      log.warn(events.failed, { file, error });
      return { kind: 'failed', error: error as Error };
    }
  };
  let cancel: () => void;
  const look = (): void => {
    reload();
    cancel = clock.after(intervalMs, look);
  };
  cancel = clock.after(intervalMs, look);
  return { reload, close: () => cancel() };
}
