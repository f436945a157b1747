/**
 * Work on whole documents: what it costs grows with their length, up to seconds for the longest, where everything else costs microseconds.
 * Documents go in and come out as bytes. `heavy/` does it.
 */
/** The patches that a cache takes; a strategic one merges by the schema of its type. */
export type PatchLanguage = Readonly<{ kind: 'json' } | { kind: 'merge' } | { kind: 'strategic'; group: string; resource: string }>;

/** What becomes of a member that stands twice: its last value counts, unless it is refused. */
export type Duplicates = 'last' | 'refused';

/** `target` is a JSON document, and so is what comes out, of at most `bytesMax` characters. */
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
  /** The same text comes out, unless a member stands twice in it. */
  | Readonly<{ kind: 'strict json'; text: Uint8Array }>
  | Readonly<{ kind: 'yaml from json'; text: Uint8Array }>
  | Readonly<{ kind: 'compare'; left: Uint8Array; right: Uint8Array }>;

/** The document that comes out; of a comparison, whether both have the same content. */
export type HeavyResult<Task extends HeavyTask> = Task extends { kind: 'compare' } ? boolean : Uint8Array;
