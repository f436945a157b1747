/** DELETE of one object: at once, whatever its finalizers say. */
import { uidOf } from '../domain/object-metadata.js';
import { jsonAnswer } from './answer.js';
import { keyOf, type Answer, type Call, type KubePorts } from './call.js';
import { readDeleteOptions } from './delete-options.js';
import { deleted } from './status.js';

export async function remove(call: Call, { intake, limits }: KubePorts): Promise<Answer> {
  const { type, path } = call;
  const key = keyOf(call);
  const options = await readDeleteOptions(call, limits.bodyBytesMax);
  const { exchange } = call;
  const object = await intake.delete({ ...options, caller: exchange.caller, asker: exchange, type, key });
  return jsonAnswer(200, deleted({ name: key.name, group: path.group, kind: path.resource, uid: uidOf(object.body) }));
}
