/**
 * Tampers with single numbered frames, which no network under TLS can do: drops one, doubles it, or
 * swaps it with the next.
 */
import type { Frame } from '../../src/frames/frame.js';
import type { Network } from './network.js';
import type { TamperKind } from './tree-step.js';

export class Tamperer {
  readonly #network: Network;
  /** By direction: what happens to the next frame. */
  readonly #due = new Map<string, TamperKind>();
  readonly #heldBack = new Map<string, Frame>();

  constructor(network: Network) {
    this.#network = network;
  }

  arrange(way: Readonly<{ from: string; to: string }>, how: TamperKind): void {
    this.#due.set(textOf(way), how);
    this.#network.tamper((frame, between) => this.#tamper(frame, textOf(between)));
  }

  /** A frame that is held back is lost. */
  stop(): void {
    this.#due.clear();
    this.#heldBack.clear();
    this.#network.tamper(undefined);
  }

  #tamper(frame: Frame, way: string): readonly Frame[] {
    if (!('sequence' in frame) || frame.kind === 'ack' || frame.kind === 'refuse') return [frame];
    const heldBack = this.#heldBack.get(way);
    this.#heldBack.delete(way);
    if (heldBack !== undefined) return [frame, heldBack];
    const how = this.#due.get(way);
    this.#due.delete(way);
    if (how === 'swapped') this.#heldBack.set(way, frame);
    return how === undefined ? [frame] : how === 'doubled' ? [frame, frame] : [];
  }
}

function textOf({ from, to }: Readonly<{ from: string; to: string }>): string {
  return `${from} ${to}`;
}
