/**
 * Measures, object by object, for how long other caches have differed from what the origin of a
 * shard holds.
 */
import { formatSlice } from '../../src/domain/slice.js';
import type { ShardName } from '../../src/domain/shard.js';
import type { SimWorld } from './sim-world.js';

type Held = Readonly<{ text: string; sinceMs: number }>;

const gone = '';

export class LateObjects {
  readonly #world: SimWorld;
  readonly #origin: string;
  /** By cache, then by key. */
  readonly #held = new Map<string, Map<string, Held>>();

  constructor(world: SimWorld, { shard, origin, others }: Readonly<{ shard: ShardName; origin: string; others: readonly string[] }>) {
    this.#world = world;
    this.#origin = origin;
    for (const name of [origin, ...others]) this.#held.set(name, new Map());
    world.observe((cache, { changes }) => {
      for (const change of changes) {
        const { key } = change;
        if (key.shard !== shard) continue;
        const text = change.kind === 'put' ? Buffer.from(change.object.body.bytes).toString('latin1') : gone;
        const name = `${formatSlice(key)} ${key.cluster}|${key.namespace}/${key.name}`;
        this.#held.get(cache)?.set(name, { text, sinceMs: world.time.now() });
      }
    });
  }

  /**
   * Advances time; returns the object that was latest meanwhile, and by how much. For an object
   * written earlier, lateness counts from this call.
   */
  async latestFor(ms: number, stepMs: number): Promise<Readonly<{ lateMs: number; what: string }>> {
    const beganMs = this.#world.time.now();
    let latest = { lateMs: 0, what: 'nothing' };
    for (let passedMs = 0; passedMs < ms; passedMs += stepMs) {
      await this.#world.time.advance(stepMs);
      const nowMs = this.#world.time.now();
      for (const [what, sinceMs] of this.#differences()) {
        const lateMs = nowMs - Math.max(sinceMs, beganMs);
        if (lateMs > latest.lateMs) latest = { lateMs, what };
      }
    }
    return latest;
  }

  /** What differs from the origin, and since when the origin has held its state. */
  *#differences(): Iterable<readonly [string, number]> {
    const here = this.#held.get(this.#origin) ?? new Map<string, Held>();
    for (const [cache, held] of this.#held)
      for (const name of new Set([...here.keys(), ...held.keys()])) {
        const { text, sinceMs } = here.get(name) ?? { text: gone, sinceMs: 0 };
        if (text !== (held.get(name)?.text ?? gone)) yield [`${name} at ${cache}`, sinceMs];
      }
  }
}
