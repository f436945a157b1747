/** PUT of a whole object. */
import { objectAnswer } from './answer.js';
import { readJsonBody } from './body.js';
import { answeredAs, formOf, keyOf, type Answer, type Call, type KubePorts } from './call.js';
import { duplicatesIn, parseWriteOptions } from './write-options.js';

export async function update(call: Call, { intake, clock, limits }: KubePorts): Promise<Answer> {
  const answered = answeredAs(call, 'one');
  const form = formOf(call, answered, clock);
  const options = parseWriteOptions(call.query, 'UpdateOptions');
  const key = keyOf(call);
  const bytes = await readJsonBody(call.exchange, limits.bodyBytesMax, call.heavy, duplicatesIn(options));
  const { exchange } = call;
  const asked = {
    ...options,
    caller: exchange.caller,
    asker: exchange,
    type: call.type,
    version: call.path.version,
    key,
    mustNameRevision: true,
  };
  const { object, warnings } = await intake.update(() => bytes, asked, call.heavy);
  return objectAnswer(200, object, form, { encoding: answered.encoding, heavy: call.heavy }, warnings);
}
