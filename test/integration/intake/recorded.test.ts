/**
 * Every POST and PUT that kcp sent while it was recorded. Each must be admitted and read back as
 * the same JSON value, byte for byte if it names its place. A write that changed nothing in kcp's
 * own cache server must change nothing here.
 */
import { test } from '../../support/test.js';
import { readFile } from 'node:fs/promises';
import type { ServedType } from '../../../src/domain/catalogue/catalogue.js';
import type { Key } from '../../../src/domain/key.js';
import { parseJson } from '../../../src/json/json-parser.js';
import { equalJson, isJsonObject, type JsonObject, type JsonTree } from '../../../src/json/json-tree.js';
import type { Body, StoredObject } from '../../../src/domain/object.js';
import { mustParse } from '../../../src/domain/parsed.js';
import { admitCreate } from '../../../src/intake/admit/admit-create.js';
import { sameContent } from '../../../src/json/same-content.js';
import { admitUpdate } from '../../../src/intake/admit/admit-update.js';
import { clusterName, shardName } from '../../support/objects.js';
import { projectFile } from '../../support/project.js';
import { aCreate, aDeclaredType, aType, anUpdate, bytesOf, read, textOf } from '../../support/intake/bodies.js';

type Recorded = Readonly<{ id: number; method: string; url: string; body?: string; status: number; answer?: string }>;

const urlPattern = /\/shards\/([^/]+)\/clusters\/([^/]+)\/apis\/([^/]+)\/([^/]+)\/(?:namespaces\/([^/]+)\/)?([^/:?]+)(?::([^/?]+))?/;

async function readWrites(file: string): Promise<readonly Recorded[]> {
  const lines = (await readFile(projectFile('test', 'clients', 'golden', file), 'utf8')).trim().split('\n');
  const writes = lines
    .map((line) => JSON.parse(line) as Recorded)
    .filter(({ method, status, body }) => (method === 'POST' || method === 'PUT') && status < 300 && body !== undefined);
  return writes.toSorted((a, b) => a.id - b.id);
}

function placeOf(url: string) {
  const [, shard = '', cluster = '', group = '', version = '', namespace, resource = '', identity = ''] =
    urlPattern.exec(decodeURIComponent(url)) ?? [];
  const declared: ServedType = {
    ...aDeclaredType(false),
    group,
    resource,
    identity,
    versions: [{ name: version, columns: [] }],
    storageVersion: version,
  };
  return {
    type: identity === '' ? aType(resource) : declared,
    version,
    identity,
    namespace,
    shard: shardName(shard),
    cluster: clusterName(cluster),
  };
}

function withoutPlace(object: JsonTree): JsonTree {
  return changed(object, 'metadata', (metadata) =>
    changed(
      metadata,
      'annotations',
      (annotations) => new Map([...annotations].filter(([name]) => name !== 'kcp.io/shard' && name !== 'kcp.io/cluster')),
    ),
  );
}

function changed(tree: JsonTree, name: string, change: (member: JsonObject) => JsonTree): JsonObject {
  const members = isJsonObject(tree) ? tree : new Map<string, JsonTree>();
  const member = members.get(name);
  return new Map(members).set(name, change(isJsonObject(member) ? member : new Map()));
}

/** The object text without a resourceVersion, where kcp's own encoder puts it. */
function withoutRevision(text: string): string {
  return text.trimEnd().replace(/"resourceVersion":"\d+",(?="uid")/, '');
}

/** The objects of one recording, stored under the revisions that the recorded server gave them. */
class Recording {
  readonly #objects = new Map<string, StoredObject>();

  /** The recorded write, admitted: the object that is stored after it, and whether it changed. */
  write({ id, method, url, body = '', answer = '{}' }: Recorded): Readonly<{ object: StoredObject; changed: boolean; repeated: boolean }> {
    const place = placeOf(url);
    const sent = read(body);
    const { uid, creationTimestamp, resourceVersion } = read(answer).metadata;
    const type = { ...place.type, kind: sent.kind };
    const keyText = `${place.shard} ${place.cluster} ${type.resource} ${place.namespace} ${sent.metadata.name}`;
    const stored = (key: Key, body: Body): Readonly<{ object: StoredObject }> => {
      const object = { key, revision: id, resourceVersion, body };
      this.#objects.set(keyText, object);
      return { object };
    };

    if (method === 'POST') {
      const { key, body: made } = mustParse(
        admitCreate(bytesOf(body), aCreate({ ...place, type, uid: () => uid, nowMs: Date.parse(creationTimestamp) })),
      ).mutation;
      return { ...stored(key, made), changed: true, repeated: false };
    }
    const before = this.#objects.get(keyText);
    if (before === undefined) throw new Error(`${id}: a PUT of what was never created`);
    const admitted = mustParse(admitUpdate(bytesOf(body), anUpdate({ type, version: place.version }), before));
    const changed = !sameContent(admitted.mutation.body.bytes, admitted.stored.bytes);
    return {
      ...stored(before.key, changed ? admitted.mutation.body : before.body),
      changed,
      repeated: before.resourceVersion === resourceVersion,
    };
  }
}

for (const [file, count] of [
  ['kcp-2-shards.jsonl', 424],
  ['kcp-identity.jsonl', 25],
] as const) {
  test(`${file}: what kcp wrote is admitted and reads back as it was sent`, async (t) => {
    const recording = new Recording();
    const writes = await readWrites(file);
    t.is(writes.length, count);

    for (const write of writes) {
      const { object, changed, repeated } = recording.write(write);

      const { body = '', id } = write;
      const { annotations = {}, resourceVersion } = read(body).metadata;
      if (repeated) t.false(changed, `${id}: it changed nothing upstream`);
      const isReplica = annotations['kcp.io/shard'] !== undefined;
      if (isReplica && annotations['kcp.io/cluster'] === object.key.cluster && annotations['kcp.io/shard'] === object.key.shard) {
        t.is(new TextDecoder().decode(object.body.bytes), withoutRevision(body), `${id}: not the same bytes`);
      }
      if (isReplica || write.method === 'PUT') {
        const asRead = mustParse(parseJson(textOf(object, resourceVersion ?? '1')));
        const asSent = mustParse(
          parseJson(resourceVersion === undefined ? body.replace('"metadata":{', '"metadata":{"resourceVersion":"1",') : body),
        );
        t.true(equalJson(withoutPlace(asRead), withoutPlace(asSent)), `${id}: another value`);
      }
    }
  });
}
