/** GET of one object. On `shards/*` it is the object of whichever shard has it; several shards: 409 naming them. */
import { Refused, resourceVersionTooLarge } from '../domain/errors.js';
import type { StoredObject } from '../domain/object.js';
import { formatGroupResource } from '../domain/resource.js';
import { objectAnswer } from './answer.js';
import { answeredAs, formOf, namespaceOf, type Answer, type Call, type KubePorts } from './call.js';
import { objectNotFound } from './kube-request.js';
import { parseResourceVersion } from './list-options.js';

export async function get(call: Call, ports: KubePorts): Promise<Answer> {
  const answered = answeredAs(call, 'one');
  const form = formOf(call, answered, ports.clock);
  const wanted = parseResourceVersion(call.query.get('resourceVersion') ?? '');
  if (wanted !== '' && wanted !== '0' && ports.revisions.locate(wanted).kind === 'above') {
    throw new Refused(resourceVersionTooLarge(wanted, ports.revisions.format(ports.revisions.published)));
  }
  // Read only once there is room for the largest: a thousand readers that take nothing must not cause a thousand reads.
  if (!(await call.exchange.room.take(ports.limits.bodyBytesMax))) return { kind: 'streamed' };
  const object = await find(call, ports);
  return objectAnswer(200, object, form, { encoding: answered.encoding, heavy: call.heavy });
}

async function find(call: Call, { objects }: KubePorts): Promise<StoredObject> {
  const { type, path, shard, cluster, identity } = call;
  const name = path.name ?? '';
  const namespace = namespaceOf(call);
  // A name alone means nothing under all clusters, nor one identity's object under all identities.
  if (cluster === '*') throw new Refused(objectNotFound(path, name));
  const { group, resource } = type;
  const found = await objects.find({ group, resource, identity, shard, cluster, namespace, name });
  const [only, ...others] = found;
  if (only === undefined || path.subresource !== undefined) throw new Refused(objectNotFound(path, name));
  if (others.length === 0) return only;
  const shards = found.map(({ key }) => key.shard).join(', ');
  throw new Refused({
    reason: 'Conflict',
    message: `${formatGroupResource(type)} ${JSON.stringify(name)} is on several shards: ${shards}`,
    details: { name, group, kind: resource },
  });
}
