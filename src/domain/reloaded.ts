/** The result of reading again something that may change while the server runs. */
export type Reloaded = Readonly<{ kind: 'changed' } | { kind: 'unchanged' } | { kind: 'failed'; error: Error }>;

/** Something that is read again at intervals, and on demand. */
export interface Reloadable {
  /** Reads it now. What changed is in use when this returns; what cannot be used is logged and changes nothing. */
  reload(): Reloaded;
  /** Ends the reading at intervals. */
  close(): void;
}
