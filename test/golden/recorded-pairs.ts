/**
 * Which of our resourceVersions and uids stand for the recorded ones: a pair is learned from each answer and each event,
 * and later requests are translated by them. Where no pair is known, that of the nearest smaller version stands in.
 */
import { place, type AnswerBody } from './transcript.js';

export class RecordedPairs {
  readonly #versions = new Map<bigint, string>();
  readonly #uids = new Map<string, string>();

  /** Objects, lists and bookmarks that answer the same request. */
  learn(recorded: AnswerBody | undefined, ours: AnswerBody | undefined): void {
    this.#pair(recorded, ours);
    if (recorded?.items === undefined || ours?.items === undefined) return;
    const byPlace = new Map(ours.items.map((item) => [place(item), item]));
    for (const item of recorded.items) this.#pair(item, byPlace.get(place(item)));
  }

  translateUrl(url: string): string {
    return url.replace(
      /([?&]resourceVersion=)(\d+)/,
      (_, name: string, text: string) => `${name}${text === '0' ? '0' : this.version(text)}`,
    );
  }

  /** Only the spans that change are replaced: a body's other bytes are what is tested. */
  translateBody(body: string): string {
    return body
      .replace(
        /("resourceVersion":")(\d+)(")/g,
        (_, before: string, text: string, after: string) => `${before}${this.version(text)}${after}`,
      )
      .replace(/("uid":")([^"]+)(")/g, (whole, before: string, uid: string, after: string) =>
        this.#uids.has(uid) ? `${before}${this.#uids.get(uid)}${after}` : whole,
      );
  }

  version(text: string): string {
    const wanted = BigInt(text);
    const exact = this.#versions.get(wanted);
    if (exact !== undefined) return exact;
    const below = [...this.#versions.keys()].filter((known) => known < wanted).reduce((max, known) => (known > max ? known : max), 0n);
    return this.#versions.get(below) ?? '0';
  }

  #pair(recorded: AnswerBody | undefined, ours: AnswerBody | undefined): void {
    const [from, to] = [recorded?.metadata, ours?.metadata];
    if (from === undefined || to === undefined) return;
    if (from.resourceVersion && to.resourceVersion) this.#learnVersion(BigInt(from.resourceVersion), String(to.resourceVersion));
    if (from.uid && to.uid && from.uid !== to.uid) this.#uids.set(from.uid, to.uid);
  }

  /** One recorded version may be learned twice, from an object and from a bookmark; the later of ours covers both. */
  #learnVersion(from: bigint, to: string): void {
    const known = this.#versions.get(from);
    if (known === undefined || BigInt(to) > BigInt(known)) this.#versions.set(from, to);
  }
}
