/** Inputs for the tests of admission: a type, a request, a stored object. */
import { kcpTypes } from '../../../src/domain/catalogue/catalogue-kcp.js';
import type { ServedType } from '../../../src/domain/catalogue/catalogue.js';
import type { Refusal } from '../../../src/domain/errors.js';
import type { StoredObject } from '../../../src/domain/object.js';
import { mustParse, type Parsed } from '../../../src/domain/parsed.js';
import { revisionText } from '../../../src/json/splice.js';
import { admitCreate, type CreateInputs } from '../../../src/intake/admit/admit-create.js';
import type { UpdateInputs } from '../../../src/intake/admit/admit-update.js';
import { clusterName, shardName } from '../objects.js';

export const storedVersion = '1000000000000007';

export function aType(resource: string): ServedType {
  const type = kcpTypes.find((candidate) => candidate.resource === resource);
  if (type === undefined) throw new Error(`${resource} is no type`);
  return type;
}

export function aDeclaredType(namespaced: boolean): ServedType {
  return {
    ...aType('apiresourceschemas'),
    group: 'machines.svm.io',
    resource: 'instances',
    kind: 'Instance',
    identity: 'hash',
    namespaced,
    versions: [{ name: 'v1', columns: [] }],
    storageVersion: 'v1',
  };
}

export function aCreate(changes: Partial<CreateInputs> = {}): CreateInputs {
  return {
    caller: { user: 'kcp', groups: ['system:masters'] },
    type: aType('apiexports'),
    version: 'v1alpha2',
    identity: '',
    shard: shardName('amber'),
    cluster: clusterName('acme'),
    namespace: undefined,
    dryRun: false,
    fieldValidation: 'Warn',
    nowMs: Date.UTC(2026, 10, 21, 0, 40, 56, 789),
    uid: () => 'made-uid',
    suffix: () => '4p88z',
    ...changes,
  };
}

export function anUpdate(changes: Partial<UpdateInputs> = {}): UpdateInputs {
  return { type: aType('apiexports'), version: 'v1alpha2', mustNameRevision: true, fieldValidation: 'Warn', ...changes };
}

/** An APIExport as JSON text. */
export function anExport(
  metadata: Readonly<Record<string, unknown>>,
  rest: Readonly<Record<string, unknown>> = { spec: { n: 1 } },
): string {
  return JSON.stringify({ apiVersion: 'apis.kcp.io/v1alpha2', kind: 'APIExport', metadata, ...rest });
}

export function bytesOf(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

/** The stored object of a text that admission accepts. */
export function aStored(text: string, request: CreateInputs = aCreate()): StoredObject {
  const { key, body } = mustParse(admitCreate(bytesOf(text), request)).mutation;
  return { key, revision: 7, resourceVersion: storedVersion, body };
}

/** The text that a client reads. */
export function textOf({ body }: Pick<StoredObject, 'body'>, resourceVersion = storedVersion): string {
  const { bytes, marks } = body;
  const [before, after] = [bytes.subarray(0, marks.revisionAt), bytes.subarray(marks.revisionAt)];
  return new TextDecoder().decode(Buffer.concat([before, Buffer.from(revisionText(body, resourceVersion)), after]));
}

export type ReadObject = Readonly<{ apiVersion: string; kind: string; metadata: ReadMeta; spec?: unknown; status?: unknown }>;
type ReadMeta = Readonly<{
  name: string;
  namespace?: string;
  uid: string;
  resourceVersion: string;
  creationTimestamp: string;
  annotations?: Readonly<Record<string, string>>;
}>;

/** The object as a client decodes it. */
export function read(text: string): ReadObject {
  return JSON.parse(text) as ReadObject;
}

export function refusalOf<T>(result: Parsed<T>): Refusal {
  if (result.kind === 'parsed') throw new Error('it was admitted');
  return result.refusal;
}
