/**
 * A look-up in a world that changes whenever the look-up waits: shards write and delete, lose their
 * pusher and sync again, and another server of the store acknowledges objects that this server
 * publishes later. The model knows what each shard has; the look-up knows what this server holds,
 * and what is reported.
 */
import { test } from '../../support/test.js';
import { seeded, type Random } from '../../support/crash/random.js';
import { aBody, aKey, shardName } from '../../support/objects.js';
import { Refused } from '../../../src/domain/errors.js';
import type { StoredObject } from '../../../src/domain/object.js';
import type { ShardName } from '../../../src/domain/shard.js';
import type { TypeFreshnessReport } from '../../../src/domain/type-freshness.js';
import type { Call, KubePorts } from '../../../src/web/kube/call.js';
import { lookUp, type LookUpParts } from '../../../src/web/look-up.js';
import { join } from '../../../src/web/formats/parts.js';

const seed = Number(process.env['TEST_SEED'] ?? Date.now() % 1_000_000_000);
const shards = [shardName('amber'), shardName('birch')];
const type = { group: 'apis.kcp.io', resource: 'apiexports', identity: undefined };

type Versions = Map<ShardName, number>;
type Answered = Readonly<{
  freshness: Pick<TypeFreshnessReport, 'whole' | 'shards'> | null;
  reportedAgoMs: number | null;
  code: number;
  body: Readonly<{ spec: Readonly<{ version: number }>; metadata: Readonly<{ annotations: Record<string, string> }> }>;
}>;

class World {
  readonly #random: Random;
  readonly #isShared: boolean;
  /** Each shard's own version of the one object. */
  readonly source: Versions = new Map();
  /** What any server has acknowledged. */
  readonly #stored: Versions = new Map();
  #here: Versions = new Map();
  readonly #whole = new Set<ShardName>();
  #published = 1;
  #versions = 0;
  /** The shards that lacked the object at some moment since the question. */
  readonly lacked = new Set<ShardName>();
  reports = 0;

  constructor(random: Random, isShared: boolean) {
    this.#random = random;
    this.#isShared = isShared;
    for (let i = 0; i < 20; i += 1) this.#happen();
  }

  get published(): number {
    return this.#published;
  }

  async reachNewest(): Promise<void> {
    await this.#wait();
    this.#publish();
    await this.#wait();
  }

  get parts(): LookUpParts {
    return {
      freshness: {
        ofType: async ({ shard }) => this.#report(shard === undefined ? shards : [shard]),
        ofTypeLately: async () => ({ report: await this.#report(shards), agoMs: 0 }),
      },
      revisions: this,
      get: async (_, answerWith) => {
        await this.#wait();
        return answerWith(aCall, { objects: { find: () => this.#find() } } as unknown as KubePorts);
      },
    };
  }

  look(shard: ShardName | undefined): Promise<Answered> {
    this.lacked.clear();
    this.#noteLacking();
    return answered(lookUp({ type: { ...type, shard }, reportAgeMaxMs: 0, target: '' }, this.parts));
  }

  async #wait(): Promise<void> {
    for (let happens = this.#random.below(3); happens > 0; happens -= 1) this.#happen();
    await Promise.resolve();
  }

  #happen(): void {
    const shard = shards[this.#random.below(shards.length)]!;
    switch (this.#random.below(6)) {
      case 0:
        this.source.set(shard, (this.#versions += 1));
        break;
      case 1:
        this.source.delete(shard);
        break;
      case 2:
        this.#whole.delete(shard);
        break;
      case 3:
        this.#whole.add(shard);
        break;
      case 4:
        if (this.#isShared) this.#publish();
        break;
    }
    for (const each of this.#whole) {
      const version = this.source.get(each);
      if (version === undefined) this.#stored.delete(each);
      else this.#stored.set(each, version);
    }
    if (!this.#isShared) this.#publish();
    this.#noteLacking();
  }

  #noteLacking(): void {
    for (const shard of shards) if (!this.source.has(shard)) this.lacked.add(shard);
  }

  #publish(): void {
    const isSame =
      this.#here.size === this.#stored.size && [...this.#stored].every(([shard, version]) => this.#here.get(shard) === version);
    if (isSame) return;
    this.#here = new Map(this.#stored);
    this.#published += 1;
  }

  async #report(of: readonly ShardName[]): Promise<TypeFreshnessReport> {
    this.reports += 1;
    await this.#wait();
    const said: boolean[] = [];
    for (const shard of of) {
      said.push(this.#whole.has(shard));
      await this.#wait();
    }
    return { whole: said.every(Boolean), shards: of.map((shard) => ({ shard })) } as unknown as TypeFreshnessReport;
  }

  async #find(): Promise<readonly StoredObject[]> {
    await this.#wait();
    const found = [...this.#here].map(([shard, version]) => stored(shard, version));
    await this.#wait();
    return found;
  }
}

const aCall = {
  type: { group: type.group, kind: 'APIExport', namespaced: false },
  path: { group: type.group, resource: type.resource, version: 'v1alpha2', name: 'one' },
  shard: '*',
  cluster: 'acme',
  labels: [],
  request: { headers: {} },
} as unknown as Call;

function stored(shard: ShardName, version: number): StoredObject {
  const key = aKey({ shard });
  return { key, revision: version, resourceVersion: String(version), body: aBody(key, { spec: { version } }) };
}

async function answered(asked: ReturnType<typeof lookUp>): Promise<Answered> {
  const answer = await asked;
  return JSON.parse(answer.kind === 'bytes' ? Buffer.from(join(answer.parts)).toString() : '') as Answered;
}

for (const isShared of [false, true])
  test(`no absence is proved if a shard always had the object, and no answer is older than its freshness: ${isShared ? 'two servers' : 'one server'}`, async (t) => {
    t.log(`TEST_SEED=${seed}`);
    const counts = { found: 0, proved: 0, unproved: 0, ambiguous: 0, unknown: 0 };
    for (let round = 0; round < 4_000; round += 1) {
      const world = new World(seeded(seed + round), isShared);
      const before = new Map(world.source);
      const { code, freshness, body } = await world.look(undefined);
      if (freshness === null) counts.unknown += 1;
      if (code === 409) counts.ambiguous += 1;
      if (code === 404 && freshness?.whole !== true) counts.unproved += 1;
      if (code === 404 && freshness?.whole === true) {
        counts.proved += 1;
        if (world.lacked.size < shards.length) t.fail(`round ${round}: proved absent, and a shard had it all the time`);
      }
      if (code !== 200) continue;
      counts.found += 1;
      const shard = body.metadata.annotations['kcp.io/shard'] as ShardName;
      if (freshness !== null)
        t.deepEqual(
          freshness.shards.map((each) => each.shard),
          [shard],
        );
      if (freshness?.whole === true && body.spec.version < (before.get(shard) ?? 0))
        t.fail(`round ${round}: version ${body.spec.version} is said to be whole, and was ${before.get(shard)} before`);
    }
    t.log(JSON.stringify(counts));
    for (const [what, count] of Object.entries(counts)) t.true(count > 0, what);
  });

test('an object that changes at every attempt is answered without freshness, after four reports', async (t) => {
  let reads = 0;
  const report = { whole: true, shards: [] } as unknown as TypeFreshnessReport;
  let reports = 0;
  const made = async (): Promise<TypeFreshnessReport> => ((reports += 1), report);
  const answer = await answered(
    lookUp(
      { type: { ...type, shard: undefined }, reportAgeMaxMs: 0, target: '' },
      {
        freshness: { ofType: made, ofTypeLately: async () => ({ report: await made(), agoMs: 0 }) },
        revisions: {
          get published() {
            return reads * 2 + reports;
          },
          reachNewest: async () => {},
        },
        get: (_, answerWith) =>
          answerWith(aCall, { objects: { find: async () => [stored(shards[(reads += 1) % 2]!, reads)] } } as unknown as KubePorts),
      },
    ),
  );

  t.like(answer, { freshness: null, reportedAgoMs: null, code: 200 });
  t.deepEqual([reports, reads], [4, 5]);
});

test('a look-up throws the refusals of a GET, except 404 and 409; a 404 says whether the type is known', async (t) => {
  const report = { whole: true, shards: [] } as unknown as TypeFreshnessReport;
  const refusing = (refusal: Refused['refusal']) =>
    answered(
      lookUp(
        { type: { ...type, shard: undefined }, reportAgeMaxMs: 0, target: '' },
        {
          freshness: { ofType: async () => report, ofTypeLately: async () => ({ report, agoMs: 40 }) },
          revisions: { published: 7, reachNewest: async () => {} },
          get: () => Promise.reject(new Refused(refusal)),
        },
      ),
    );

  t.like(await refusing({ reason: 'NotFound', message: 'no path' }), { code: 404, reportedAgoMs: 40, freshness: { whole: true } });
  t.like(await refusing({ reason: 'NotFound', message: 'none', details: { name: 'one' } }), { code: 404, freshness: { whole: true } });
  t.like(await refusing({ reason: 'NotFound', message: 'no type', details: {} }), { code: 404, freshness: { whole: false } });
  t.like(await refusing({ reason: 'Conflict', message: 'several' }), { code: 409 });
  for (const reason of ['BadRequest', 'Forbidden', 'AlreadyExists', 'ServiceUnavailable', 'Timeout'] as const)
    await t.throwsAsync(refusing({ reason, message: reason }), { instanceOf: Refused, message: reason });
});
