/** The rules of metadata: pure, and all that is wrong is reported at once. */
import type { ServedType } from '../domain/catalogue.js';
import type { Cause } from '../domain/errors.js';
import { annotationCauses, labelCauses } from '../domain/label-syntax.js';
import { dnsLabelFlaws, dnsSubdomainFlaws, pathSegmentFlaws } from '../domain/name-syntax.js';
import type { ObjectMeta } from '../json/object-meta.js';
import { invalidValue } from './refusals.js';

/** Of a name and its namespace. Names of RBAC objects have no bound of their own; a page of a list that ends with one has it in its continue token. */
export const keyCharactersMax = 1024;

/** What is wrong with an object that is to be created under `name` in `namespace`. */
export function createCauses(type: ServedType, meta: ObjectMeta, place: Readonly<{ name: string; namespace: string }>): readonly Cause[] {
  return [...prefixCauses(type, meta), ...placeCauses(type, place), ...generationCauses(meta), ...markCauses(meta)];
}

const tooLong: Cause = {
  reason: 'FieldValueTooLong',
  message: `Too long: may not be more than ${keyCharactersMax} characters, with the namespace`,
  field: 'metadata.name',
};

/** Why no object of the type can have this place. */
export function placeCauses(type: ServedType, { name, namespace }: Readonly<{ name: string; namespace: string }>): readonly Cause[] {
  if (name.length + namespace.length > keyCharactersMax) return [tooLong];
  return [...nameCauses(type, name), ...namespaceCauses(type, namespace)];
}

/** What is wrong with an object that is to replace one of generation `stored`. Name and namespace are those of the stored one. */
export function updateCauses(meta: ObjectMeta, stored: bigint): readonly Cause[] {
  const decremented = meta.generation !== 0n && meta.generation < stored;
  const causes = decremented ? [invalidValue('metadata.generation', meta.generation, 'must not be decremented')] : generationCauses(meta);
  return [...segmentPrefixCauses(meta), ...causes, ...markCauses(meta)];
}

function nameCauses(type: ServedType, name: string): readonly Cause[] {
  const field = 'metadata.name';
  if (name === '') return [{ reason: 'FieldValueRequired', message: 'Required value: name or generateName is required', field }];
  const flaws = type.nameRule === 'subdomain' ? dnsSubdomainFlaws(name) : segmentFlaws(name);
  return flaws.map((flaw) => invalidValue(field, name, flaw));
}

/** As for a name, but a prefix may end where a name may not: in '-', or being '.'. */
function prefixCauses(type: ServedType, meta: ObjectMeta): readonly Cause[] {
  const { generateName } = meta;
  if (generateName === '') return [];
  if (type.nameRule !== 'subdomain') return segmentPrefixCauses(meta);
  return dnsSubdomainFlaws(generateName.replace(/.-$/s, 'a')).map((flaw) => invalidValue('metadata.generateName', generateName, flaw));
}

function segmentPrefixCauses({ generateName }: ObjectMeta): readonly Cause[] {
  return segmentFlaws(`${generateName}x`).map((flaw) => invalidValue('metadata.generateName', generateName, flaw));
}

/** A lone surrogate has no UTF-8, so a store would give the name back as another one. */
function segmentFlaws(name: string): readonly string[] {
  return /\p{Surrogate}/u.test(name) ? ['must be valid Unicode'] : pathSegmentFlaws(name);
}

function namespaceCauses(type: ServedType, namespace: string): readonly Cause[] {
  return type.namespaced ? dnsLabelFlaws(namespace).map((flaw) => invalidValue('metadata.namespace', namespace, flaw)) : [];
}

function generationCauses({ generation }: ObjectMeta): readonly Cause[] {
  return generation < 0n ? [invalidValue('metadata.generation', generation, 'must be greater than or equal to 0')] : [];
}

function markCauses({ labels, annotations }: ObjectMeta): readonly Cause[] {
  return [...labelCauses(labels), ...annotationCauses(annotations)];
}
