/**
 * Work on whole documents, passed as bytes. `heavy/` does this work, which may take seconds if the
 * documents are long.
 */
/** The patch types that a cache accepts. A strategic patch merges by the schema of its type. */
export type PatchLanguage = Readonly<{ kind: 'json' } | { kind: 'merge' } | { kind: 'strategic'; group: string; resource: string }>;

/**
 * What to do if a member's name occurs twice in an object: use the last value, or refuse the
 * document.
 */
export type Duplicates = 'last' | 'refused';

/** `target` and the result are JSON documents; the result has at most `bytesMax` characters. */
export type PatchTask = Readonly<{
  kind: 'patch';
  target: Uint8Array;
  patch: Uint8Array;
  language: PatchLanguage;
  bytesMax: number;
  duplicates?: Duplicates;
}>;

export type HeavyTask =
  | PatchTask
  | Readonly<{ kind: 'json from yaml'; text: Uint8Array; bytesMax: number; duplicates?: Duplicates }>
  /** Returns the same text; refused if a member's name occurs twice in an object. */
  | Readonly<{ kind: 'strict json'; text: Uint8Array }>
  | Readonly<{ kind: 'yaml from json'; text: Uint8Array }>
  | Readonly<{ kind: 'compare'; left: Uint8Array; right: Uint8Array }>;

/** The resulting document; for a comparison, whether both documents have the same content. */
export type HeavyResult<Task extends HeavyTask> = Task extends { kind: 'compare' } ? boolean : Uint8Array;
