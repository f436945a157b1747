/**
 * A small file beside the store that remembers what the store has acknowledged, so that a store which was rolled back
 * (restored from a backup, copied from elsewhere) is known as such and begins a new epoch (D2).
 *
 *   start:   store.nonce := new, store.previous := old ── commit ──▶ witness.nonce := new      a crash between leaves the old
 *   commit:  store.revision := r ── commit ──▶ witness.revision := r ──▶ acknowledge            nonce, which still matches
 *
 * The file is written with every commit and not synced: it survives kill -9 exactly, and may only lag after a loss of
 * power, when the store itself has lost nothing.
 */
import { closeSync, constants, fsyncSync, openSync, readFileSync, writeSync } from 'node:fs';

export type Testimony = Readonly<{ nonce: string; revision: number }>;

const lineCharacters = 64;

/** What the file tells, or undefined when it is missing or unreadable. */
export function readWitness(file: string): Testimony | undefined {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
  const [nonce, revision] = text.trim().split(' ');
  if (nonce === undefined || revision === undefined || !/^\d+$/.test(revision)) return undefined;
  return { nonce, revision: Number(revision) };
}

/** Whether a store with these facts may have been rolled back since the testimony was given. */
export function wasRolledBack(store: { nonce: string; previousNonce: string; revision: number }, testimony: Testimony | undefined): boolean {
  if (testimony === undefined) return true;
  if (testimony.nonce !== store.nonce && testimony.nonce !== store.previousNonce) return true;
  return store.revision < testimony.revision;
}

/** The open file. Its one line has a fixed length, so that a write replaces it whole. */
export class Witness {
  readonly #fd: number;
  readonly #nonce: string;

  constructor(file: string, nonce: string, revision: number) {
    this.#fd = openSync(file, constants.O_RDWR | constants.O_CREAT, 0o600);
    this.#nonce = nonce;
    this.testify(revision);
    fsyncSync(this.#fd);
  }

  testify(revision: number): void {
    writeSync(this.#fd, `${this.#nonce} ${revision}`.padEnd(lineCharacters - 1) + '\n', 0);
  }

  close(): void {
    closeSync(this.#fd);
  }
}
