/**
 * A pusher that puts and deletes objects until the server is gone, and remembers which writes the
 * server acknowledged. When it reconnects, it syncs all its objects as it last wanted them, which
 * settles every write of unknown outcome.
 */
import { RawPusher, pushedExport, sliceOf, type PushTarget } from '../../support/raw-pusher.js';
import type { Acknowledged, ObjectKey } from '../../support/watch-history.js';
import type { Random } from '../../support/crash/random.js';

const unacknowledgedMax = 16;

export class PushingWriter {
  readonly acknowledged: Acknowledged[] = [];
  /** Number of writes of unknown outcome, over all runs. */
  unanswered = 0;
  readonly #server: PushTarget;
  readonly #random: Random;
  readonly #shard: string;
  readonly #names: readonly string[];
  readonly #term: number;
  /** The turn of each object that the server should hold, by name. */
  readonly #wanted = new Map<string, string>();
  #turn = 0;

  constructor(server: PushTarget, random: Random, { shard, objects }: Readonly<{ shard: string; objects: number }>) {
    this.#server = server;
    this.#random = random;
    this.#shard = shard;
    // No shard shares a name with another: to delete an object that has a namesake is two changes,
    // so a count of changes would not be exact.
    this.#names = Array.from({ length: objects }, (_, index) => `${shard}-${index}`);
    this.#term = Date.now();
  }

  /** Writes until the connection ends or the signal fires. */
  async run(signal?: AbortSignal): Promise<void> {
    const slice = sliceOf('apiexports', { shard: this.#shard });
    const sent: Readonly<{ sequence: number; write: Acknowledged }>[] = [];
    let pusher: RawPusher | undefined;
    const leave = (): void => pusher?.socket.terminate();
    try {
      pusher = await RawPusher.connect(this.#server);
      // The signal may have fired during the connect.
      signal?.throwIfAborted();
      signal?.addEventListener('abort', leave);
      pusher.hello({ name: this.#shard, term: this.#term });
      await pusher.expect('welcome');
      await pusher.sync(
        slice,
        [...this.#wanted].map(([name, turn]) => this.#object(name, turn)),
      );
      for (;;) {
        while (sent.length < unacknowledgedMax) {
          const name = this.#names[this.#random.below(this.#names.length)]!;
          const key = this.#keyOf(name);
          if (this.#wanted.has(name) && this.#random.chance(0.25)) {
            this.#wanted.delete(name);
            sent.push({ sequence: pusher.delete(slice, [name]), write: { kind: 'delete', key, behind: 0n } });
          } else {
            const turn = `${this.#shard}.${this.#turn++}`;
            this.#wanted.set(name, turn);
            sent.push({ sequence: pusher.put(slice, [this.#object(name, turn)]), write: { kind: 'put', key, turn } });
          }
        }
        const frame = await pusher.next();
        if (frame.kind === 'bye' || frame.kind === 'refuse') throw new Error(`${frame.kind} ${frame.reason}: ${frame.message}`);
        if (frame.kind !== 'ack') continue;
        const left = sent.findIndex(({ sequence }) => sequence > frame.sequence);
        this.acknowledged.push(...sent.splice(0, left < 0 ? sent.length : left).map(({ write }) => write));
      }
    } catch (error) {
      if (error instanceof Error && /^(?:bye (?!shutdown|unavailable)|refuse)/.test(error.message)) throw error;
      this.unanswered += sent.length;
    } finally {
      signal?.removeEventListener('abort', leave);
      leave();
    }
  }

  #object(name: string, turn: string) {
    const colour = Number(turn.split('.')[1]) % 2 ? 'red' : 'blue';
    return pushedExport(name, { metadata: { name, uid: `uid-of-${name}`, labels: { turn, colour } } });
  }

  #keyOf(name: string): ObjectKey {
    return `${this.#shard}|acme||${name}`;
  }
}
