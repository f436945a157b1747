/**
 * Files that an operator replaces while the server runs. They are read every `intervalMs` and on
 * demand, and compared by content. Kubernetes replaces a secret by a symbolic link, which file
 * watchers miss, and a file's times may not change.
 *
 * A file that cannot be used is logged at each poll and changes nothing. A half-replaced pair is
 * complete at the next poll.
 */
import type { Log } from '../diagnostics/log.js';
import type { Clock } from '../domain/ports.js';
import type { Reloadable, Reloaded } from '../domain/base/reloaded.js';

export type PolledFiles = Readonly<{
  events: Readonly<{ reloaded: string; failed: string }>;
  /** The file that the log names. */
  file: string;
  /**
   * Reads the files and applies changes. Returns false if nothing has changed; throws if the files
   * cannot be used.
   */
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
