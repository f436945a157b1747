/**
 * Maps recorded resourceVersions and uids to those of the server under test. Each answer and each
 * event gives a pair; later requests are translated with the known pairs.
 *
 * A version means two things. In a body it is that of one object, as a write or an event gave it.
 * In a URL it is how far a reader has read, which lists and bookmarks also show. Several versions
 * of the server may then correspond to one recorded version; the latest covers the others. A
 * version without a pair is mapped as the nearest smaller one.
 */
import { place, type AnswerBody } from './transcript.js';

export class RecordedPairs {
  readonly #objects = new Map<string, string>();
  readonly #positions = new Map<bigint, string>();
  readonly #uids = new Map<string, string>();

  /** Adds the pairs of two answers to the same request: objects, lists or bookmarks. */
  learn(recorded: AnswerBody | undefined, ours: AnswerBody | undefined): void {
    this.#pair(recorded, ours);
    if (recorded?.items === undefined || ours?.items === undefined) return;
    const byPlace = new Map(ours.items.map((item) => [place(item), item]));
    for (const item of recorded.items) this.#pair(item, byPlace.get(place(item)));
  }

  translateUrl(url: string): string {
    return url.replace(
      /([?&]resourceVersion=)(\d+)/,
      (_, name: string, text: string) => `${name}${text === '0' ? '0' : this.#position(text)}`,
    );
  }

  /** Replaces only the texts that differ, because the test is about a body's other bytes too. */
  translateBody(body: string): string {
    return body
      .replace(
        /("resourceVersion":")(\d+)(")/g,
        (_, before: string, text: string, after: string) => `${before}${this.#objects.get(text) ?? this.#position(text)}${after}`,
      )
      .replace(/("uid":")([^"]+)(")/g, (_, before: string, uid: string, after: string) => `${before}${this.#uids.get(uid) ?? uid}${after}`);
  }

  #position(text: string): string {
    const wanted = BigInt(text);
    const exact = this.#positions.get(wanted);
    if (exact !== undefined) return exact;
    const below = [...this.#positions.keys()].filter((known) => known < wanted).reduce((max, known) => (known > max ? known : max), 0n);
    return this.#positions.get(below) ?? '0';
  }

  #pair(recorded: AnswerBody | undefined, ours: AnswerBody | undefined): void {
    const [from, to] = [recorded?.metadata, ours?.metadata];
    if (from === undefined || to === undefined) return;
    if (from.resourceVersion && to.resourceVersion) {
      if (from.name !== undefined) this.#objects.set(from.resourceVersion, to.resourceVersion);
      this.#learnPosition(BigInt(from.resourceVersion), to.resourceVersion);
    }
    if (from.uid && to.uid && from.uid !== to.uid) this.#uids.set(from.uid, to.uid);
  }

  #learnPosition(from: bigint, to: string): void {
    const known = this.#positions.get(from);
    if (known === undefined || BigInt(to) > BigInt(known)) this.#positions.set(from, to);
  }
}
