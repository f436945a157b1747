import type { Refusal } from '../../domain/errors.js';
import type { Key } from '../../domain/key.js';
import type { ListEncoding, Representation } from '../../domain/ports.js';
import type { ObjectForm } from './object-form.js';
import { encode, join, type Part } from './parts.js';
import { failure } from './status.js';

/** The elements of a list, each with a comma in front. `listBytes` drops the very first comma. */
export function listEncoding(form: ObjectForm): ListEncoding {
  return {
    id: `list ${form.id}`,
    ...(form.isOwn && { isOwn: true }),
    encode: (objects) => {
      const parts: Part[] = [];
      for (const object of objects) parts.push(',', ...form.element(object, object.resourceVersion));
      return join(parts);
    },
  };
}

export function watchRepresentation(form: ObjectForm): Representation {
  const event = (type: string, object: readonly Part[]): readonly Part[] => [`{"type":"${type}","object":`, ...object, '}\n'];
  return {
    id: form.id,
    ...(form.isOwn && { isOwn: true }),
    events: (items) => {
      const parts: Part[] = [];
      for (const { type, object, resourceVersion } of items) parts.push(...event(type, form.single(object, resourceVersion)));
      return join(parts);
    },
    forgotten: (keys, resourceVersion) => join(keys.flatMap((key) => event('DELETED', form.bare(bareMetadata(key, resourceVersion))))),
    bookmark: (resourceVersion, initialEventsEnd) => {
      const annotations = initialEventsEnd ? ',"annotations":{"k8s.io/initial-events-end":"true"}' : '';
      return join(event('BOOKMARK', form.bare(`{"resourceVersion":"${resourceVersion}"${annotations}}`)));
    },
    error: (refusal: Refusal) => join(event('ERROR', [encode(failure(refusal).text)])),
  };
}

function bareMetadata({ name, namespace, cluster, shard }: Key, resourceVersion: string): string {
  return JSON.stringify({
    name,
    ...(namespace === '' ? {} : { namespace }),
    resourceVersion,
    annotations: { 'kcp.io/cluster': cluster, 'kcp.io/shard': shard },
  });
}
