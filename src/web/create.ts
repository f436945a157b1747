/** POST of a new object. */
import { Refused } from '../domain/errors.js';
import { objectAnswer } from './answer.js';
import { readJsonBody } from './body.js';
import { answeredAs, formOf, placeOf, type Answer, type Call, type KubePorts } from './call.js';
import { objectNotFound } from './kube-request.js';
import { duplicatesIn, parseWriteOptions } from './write-options.js';

export async function create(call: Call, { intake, clock, limits }: KubePorts): Promise<Answer> {
  const { type, path, identity } = call;
  const answered = answeredAs(call, 'one');
  const form = formOf(call, answered, clock);
  const options = parseWriteOptions(call.query, 'CreateOptions');
  const place = placeOf(call);
  // A type that a ClusterCachedResource declares may have its namespace in the body only.
  const isMisplaced = type.namespaced !== (path.namespace !== undefined);
  if (isMisplaced && (identity === '' || path.namespace !== undefined)) throw new Refused(objectNotFound(path, ''));

  const bytes = await readJsonBody(call.exchange, limits.bodyBytesMax, call.heavy, duplicatesIn(options));
  const { object, warnings } = await intake.create(bytes, {
    ...options,
    ...place,
    caller: call.exchange.caller,
    type,
    identity,
    version: path.version,
    namespace: path.namespace,
  });
  return objectAnswer(201, object, form, { encoding: answered.encoding, heavy: call.heavy }, warnings);
}
