/**
 * GET of one object. On `shards/*` or `clusters/*` the object may be on any shard or in any logical
 * cluster. If several places have an object of that name, the answer is a 409 that names them.
 */
import { Refused, resourceVersionTooLarge, type Refusal } from '../../domain/errors.js';
import type { Key } from '../../domain/key.js';
import type { StoredObject } from '../../domain/object.js';
import { isSelected } from '../../domain/object-metadata.js';
import { formatGroupResource } from '../../domain/resource.js';
import type { Scope } from '../../domain/scope.js';
import { snapshotPages } from '../../domain/snapshot-pages.js';
import { objectAnswer } from '../formats/answer.js';
import { answeredAs, formOf, namespaceOf, candidatesNamedMax, type Answer, type Call, type KubePorts } from './call.js';
import { objectNotFound } from './kube-request.js';
import { parseResourceVersion } from './list-options.js';

export async function get(call: Call, ports: KubePorts): Promise<Answer> {
  const answered = answeredAs(call, 'one');
  const form = formOf(call, answered, ports.clock);
  const wanted = parseResourceVersion(call.query.get('resourceVersion') ?? '');
  if (wanted !== '' && wanted !== '0' && ports.revisions.locate(wanted).kind === 'above') {
    throw new Refused(resourceVersionTooLarge(wanted, ports.revisions.format(ports.revisions.published)));
  }
  // Take memory for the largest object before reading: a thousand readers that accept no bytes must
  // not cause a thousand reads.
  if (!(await call.exchange.memory.reserve(ports.limits.bodyBytesMax))) return { kind: 'streamed' };
  const object = await find(call, ports);
  return objectAnswer(200, object, form, { encoding: answered.encoding, heavy: call.heavy });
}

/** Throws Refused: 404 if there is no such object, 409 if several places have one. */
export async function find(call: Call, ports: KubePorts): Promise<StoredObject> {
  const { type, path, shard, cluster, identity, labels } = call;
  const name = path.name ?? '';
  const namespace = namespaceOf(call);
  if (path.subresource !== undefined) throw new Refused(objectNotFound(path, name));
  const { group, resource } = type;
  const scope = { group, resource, identity, shard, cluster, namespace, name };
  const isShown = (object: StoredObject): boolean => isSelected(object, { labels, fields: [] });
  const { first, keys } =
    cluster === '*' ? await findInAnyCluster(scope, call, ports) : held((await ports.objects.find(scope)).filter(isShown));
  if (first === undefined) throw new Refused(objectNotFound(path, name));
  if (keys.length === 1) return first;
  throw new Refused(ambiguousName({ ...scope, name }, keys));
}

export function ambiguousName(scope: Scope & Readonly<{ name: string }>, keys: readonly Key[]): Refusal {
  const { group, resource, name } = scope;
  return {
    reason: 'Conflict',
    message: `${formatGroupResource(scope)} ${JSON.stringify(name)} ${formatPlaces(scope, keys)}`,
    details: { name, group, kind: resource },
  };
}

type Found = Readonly<{ first: StoredObject | undefined; keys: readonly Key[] }>;

function held(objects: readonly StoredObject[]): Found {
  return { first: objects[0], keys: objects.map(({ key }) => key) };
}

/**
 * Reads every key of the type, because no index maps a name to its logical clusters. Stops once
 * there are more places than a refusal names.
 */
async function findInAnyCluster(scope: Scope, { exchange }: Call, { objects, revisions }: KubePorts): Promise<Found> {
  const keys: Key[] = [];
  let first: StoredObject | undefined;
  for await (const page of snapshotPages(objects.snapshot(scope, revisions.published))) {
    first ??= page[0];
    keys.push(...page.map(({ key }) => key));
    await exchange.turn();
    if (keys.length > candidatesNamedMax || exchange.isOver) break;
  }
  return { first, keys };
}

function formatPlaces({ shard, cluster }: Scope, keys: readonly Key[]): string {
  if (cluster !== '*') return `is on several shards: ${keys.map((key) => key.shard).join(', ')}`;
  const named = keys.slice(0, candidatesNamedMax);
  const others = named.length < keys.length ? ' and others' : '';
  return shard === '*'
    ? `is in several places (shard/cluster): ${named.map((key) => `${key.shard}/${key.cluster}`).join(', ')}${others}`
    : `is in several logical clusters: ${named.map((key) => key.cluster).join(', ')}${others}`;
}
