/**
 * A small file beside the store that remembers what the store has acknowledged, so that a store which was rolled back
 * (restored from a backup, copied from elsewhere) is known as such and begins a new epoch (D2).
 *
 *   start:   store.nonce := new, store.previous := witness.nonce ── commit ──▶ witness.nonce := new      a crash between leaves
 *   commit:  store.revision := r ── commit ──▶ witness.revision := r ──▶ acknowledge                      what still matches
 *
 * It outlives the store it was written for, hence it knows the epoch as well: the next one is above it, even when the same
 * backup is restored twice. The file is written with every commit and not synced: it survives kill -9 exactly, and may only lag after a loss of
 * power, when the store itself has lost nothing.
 */
import { closeSync, constants, fsyncSync, openSync, readFileSync, writeSync } from 'node:fs';

export type Testimony = Readonly<{ nonce: string; revision: number; epoch: number }>;

const lineCharacters = 64;

/** What the file tells, or undefined when it is missing or unreadable. */
export function readWitness(file: string): Testimony | undefined {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
  const [, nonce = '', revision, epoch] = /^(\S+) (\d+) (\d+)\s*$/.exec(text) ?? [];
  return nonce === '' ? undefined : { nonce, revision: Number(revision), epoch: Number(epoch) };
}

/** Whether a store with these facts may have been rolled back since the testimony was given. */
export function wasRolledBack(
  store: { nonce: string; previousNonce: string; revision: number },
  testimony: Testimony | undefined,
): boolean {
  if (testimony === undefined) return true;
  if (testimony.nonce !== store.nonce && testimony.nonce !== store.previousNonce) return true;
  return store.revision < testimony.revision;
}

/** The open file. Its one line has a fixed length, so that a write replaces it whole. */
export class Witness {
  readonly #fd: number;
  readonly #life: Pick<Testimony, 'nonce' | 'epoch'>;

  constructor(file: string, { revision, ...life }: Testimony) {
    this.#fd = openSync(file, constants.O_RDWR | constants.O_CREAT, 0o600);
    this.#life = life;
    this.testify(revision);
    fsyncSync(this.#fd);
  }

  testify(revision: number): void {
    const { nonce, epoch } = this.#life;
    writeSync(this.#fd, `${nonce} ${revision} ${epoch}`.padEnd(lineCharacters - 1) + '\n', 0);
  }

  close(): void {
    closeSync(this.#fd);
  }
}
