/** DELETE of one object. It takes effect at once, even if the object has finalizers. */
import { uidOf } from '../domain/object-metadata.js';
import { encoded } from './answer.js';
import { answeredAs, keyOf, type Answer, type Call, type KubePorts } from './call.js';
import { readDeleteOptions } from './delete-options.js';
import { encode } from './parts.js';
import { deleted } from './status.js';

export async function remove(call: Call, { intake, limits }: KubePorts): Promise<Answer> {
  const { type, path, exchange, heavy } = call;
  const { encoding } = answeredAs(call, 'one');
  const key = keyOf(call);
  const options = await readDeleteOptions(call, limits.bodyBytesMax);
  const object = await intake.delete({ ...options, caller: exchange.caller, asker: exchange, type, key });
  const status = deleted({ name: key.name, group: path.group, kind: path.resource, uid: uidOf(object.body) });
  return encoded(200, [encode(status)], { encoding, heavy });
}
