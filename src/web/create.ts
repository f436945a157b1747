/** POST of a new object (W1–W6, W14). A generated name that is taken is tried again with another (W6). */
import { randomInt, randomUUID } from 'node:crypto';
import { Refused } from '../domain/errors.js';
import type { StoredObject } from '../domain/object.js';
import { mustParse } from '../domain/parsed.js';
import { admitCreate, type Admitted } from '../intake/admit-create.js';
import { objectAnswer } from './answer.js';
import { readJsonBody } from './body.js';
import { answeredAs, formOf, placeOf, type Answer, type Call, type KubePorts } from './call.js';
import { alreadyExists, objectNotFound } from './kube-request.js';
import { parseWriteOptions, type WriteOptions } from './write-options.js';

const generatedNameTriesMax = 8;
/** No vowels and nothing that looks like another letter: Kubernetes' own alphabet for generated names. */
const suffixAlphabet = 'bcdfghjklmnpqrstvwxz2456789';
const suffixCharacters = 5;

export async function create(call: Call, ports: KubePorts): Promise<Answer> {
  const answered = answeredAs(call, 'one');
  const form = formOf(call, answered, ports.clock);
  const options = parseWriteOptions(call.query, 'CreateOptions');
  const admit = await admitter(call, ports, options);
  for (let tries = 1; ; tries++) {
    const admitted = admit();
    const created = await store(admitted, ports, options);
    if (created !== 'exists') return objectAnswer(201, created, form, answered.encoding, admitted.warnings);
    const { name } = admitted.mutation.key;
    if (!admitted.generated) throw new Refused(alreadyExists(call.path, name));
    if (tries === generatedNameTriesMax) {
      const { details, ...refusal } = alreadyExists(call.path, name);
      throw new Refused({ ...refusal, details: { ...details, retryAfterSeconds: 1 } });
    }
  }
}

async function admitter(call: Call, { limits, clock }: KubePorts, { fieldValidation }: WriteOptions): Promise<() => Admitted> {
  const { type, path, identity } = call;
  const { shard, cluster } = placeOf(call);
  // A type that a ClusterCachedResource declares may name its namespace in the body only (W18).
  if (type.namespaced !== (path.namespace !== undefined) && (identity === '' || path.namespace !== undefined)) throw new Refused(objectNotFound(path, ''));
  const bytes = await readJsonBody(call.request, limits.bodyBytesMax);
  const request = { type, version: path.version, identity, shard, cluster, namespace: path.namespace, nowMs: clock.now(), uid: randomUUID, suffix, fieldValidation };
  return () => mustParse(admitCreate(bytes, request));
}

async function store({ mutation }: Admitted, { writer, objects }: KubePorts, { dryRun }: WriteOptions): Promise<StoredObject | 'exists'> {
  if (dryRun) return (await objects.get(mutation.key)) === undefined ? unstored(mutation) : 'exists';
  const outcome = await writer.submit(mutation);
  if (outcome.kind === 'unavailable') throw new Refused(outcome.refusal);
  return outcome.kind === 'written' ? outcome.object : 'exists';
}

/** What would have been stored. It has no revision, so it is shown with none that a client could take for one. */
export function unstored(mutation: Admitted['mutation'], resourceVersion = ''): StoredObject {
  return { key: mutation.key, revision: 0, resourceVersion, body: mutation.body };
}

function suffix(): string {
  return Array.from({ length: suffixCharacters }, () => suffixAlphabet[randomInt(suffixAlphabet.length)]).join('');
}
