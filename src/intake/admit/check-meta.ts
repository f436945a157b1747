/** The rules of metadata. Pure; all causes are reported at once. */
import type { ServedType } from '../../domain/catalogue/catalogue.js';
import { invalidValue, type Cause } from '../../domain/errors.js';
import { annotationCauses, labelCauses } from '../../domain/syntax/label-syntax.js';
import { dnsLabelFlaws, dnsSubdomainFlaws, pathSegmentFlaws } from '../../domain/syntax/name-syntax.js';
import type { ObjectMeta } from '../../json/object-meta.js';

/**
 * Bounds name and namespace together, and so the continue token of a list, which contains the last
 * name of its page. Kubernetes sets no bound on the names of RBAC objects.
 */
export const keyCharactersMax = 1024;

/** `addedBytesMax`: see `addedMax`. */
export function createCauses(
  type: ServedType,
  meta: ObjectMeta,
  place: Readonly<{ name: string; namespace: string }>,
  addedBytesMax = 0,
): readonly Cause[] {
  return [...prefixCauses(type, meta), ...keyCauses(type, place), ...generationCauses(meta), ...markCauses(meta, addedBytesMax)];
}

const tooLong: Cause = {
  reason: 'FieldValueTooLong',
  message: `Too long: may not be more than ${keyCharactersMax} characters, with the namespace`,
  field: 'metadata.name',
};

export function keyCauses(type: ServedType, { name, namespace }: Readonly<{ name: string; namespace: string }>): readonly Cause[] {
  if (name.length + namespace.length > keyCharactersMax) return [tooLong];
  return [...nameCauses(type, name), ...namespaceCauses(type, namespace)];
}

/**
 * Causes to refuse an update of an object whose generation is `stored`. Name and namespace are
 * those of the stored object.
 */
export function updateCauses(meta: ObjectMeta, stored: bigint, addedBytesMax = 0): readonly Cause[] {
  const decremented = meta.generation !== 0n && meta.generation < stored;
  const causes = decremented ? [invalidValue('metadata.generation', meta.generation, 'must not be decremented')] : generationCauses(meta);
  return [...segmentPrefixCauses(meta), ...causes, ...markCauses(meta, addedBytesMax)];
}

function nameCauses(type: ServedType, name: string): readonly Cause[] {
  const field = 'metadata.name';
  if (name === '') return [{ reason: 'FieldValueRequired', message: 'Required value: name or generateName is required', field }];
  const flaws = type.nameRule === 'subdomain' ? dnsSubdomainFlaws(name) : segmentFlaws(name);
  return flaws.map((flaw) => invalidValue(field, name, flaw));
}

/** The rules of a name apply, but a prefix may end in '-', and may be '.'. */
function prefixCauses(type: ServedType, meta: ObjectMeta): readonly Cause[] {
  const { generateName } = meta;
  if (generateName === '') return [];
  if (type.nameRule !== 'subdomain') return segmentPrefixCauses(meta);
  return dnsSubdomainFlaws(generateName.replace(/.-$/s, 'a')).map((flaw) => invalidValue('metadata.generateName', generateName, flaw));
}

function segmentPrefixCauses({ generateName }: ObjectMeta): readonly Cause[] {
  return segmentFlaws(`${generateName}x`).map((flaw) => invalidValue('metadata.generateName', generateName, flaw));
}

/** UTF-8 cannot encode a lone surrogate, so a store would return a different name. */
function segmentFlaws(name: string): readonly string[] {
  return /\p{Surrogate}/u.test(name) ? ['must be valid Unicode'] : pathSegmentFlaws(name);
}

function namespaceCauses(type: ServedType, namespace: string): readonly Cause[] {
  return type.namespaced ? dnsLabelFlaws(namespace).map((flaw) => invalidValue('metadata.namespace', namespace, flaw)) : [];
}

function generationCauses({ generation }: ObjectMeta): readonly Cause[] {
  return generation < 0n ? [invalidValue('metadata.generation', generation, 'must be greater than or equal to 0')] : [];
}

function markCauses({ labels, annotations }: ObjectMeta, addedBytesMax = 0): readonly Cause[] {
  return [...labelCauses(labels), ...annotationCauses(annotations, addedBytesMax)];
}
