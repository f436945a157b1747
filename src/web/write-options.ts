/** The options of a write, from its query. Pure; each function throws Refused with every error. */
import { Refused, type Cause } from '../domain/errors.js';
import type { Duplicates } from '../domain/heavy-task.js';
import type { FieldValidation } from '../domain/write-request.js';
import { isTrue } from './kube-request.js';
import { invalidOptions, parseInteger } from './list-options.js';

export type WriteOptions = Readonly<{ dryRun: boolean; fieldValidation: FieldValidation }>;

/** `uid`, `resourceVersion`: preconditions; undefined if there is none. */
export type DeleteOptions = Readonly<{ dryRun: boolean; uid: string | undefined; resourceVersion: string | undefined }>;

const fieldManagerBytesMax = 128;
/** Accepts what Go's unicode.IsPrint accepts. */
const printable = /^[\p{L}\p{M}\p{N}\p{P}\p{S} ]*$/u;
const propagationPolicies = ['Foreground', 'Background', 'Orphan'];
const unsafeDelete = 'ignoreStoreReadErrorWithClusterBreakingPotential';

/** `kind`: names the options in a refusal. */
export function parseWriteOptions(query: URLSearchParams, kind: 'CreateOptions' | 'UpdateOptions' | 'PatchOptions'): WriteOptions {
  const causes = [...dryRunCauses(query)];
  const fieldValidation = query.get('fieldValidation') || 'Warn';
  if (!isFieldValidation(fieldValidation)) causes.push(notSupported('fieldValidation', fieldValidation, '"Ignore", "Strict", "Warn"'));
  const manager = query.get('fieldManager') ?? '';
  if (Buffer.byteLength(manager) > fieldManagerBytesMax) {
    causes.push({
      reason: 'FieldValueTooLong',
      message: `Too long: may not be more than ${fieldManagerBytesMax} bytes`,
      field: 'fieldManager',
    });
  }
  if (!printable.test(manager)) causes.push(invalidValue('fieldManager', manager, 'should only contain printable characters'));
  if (kind === 'PatchOptions' && query.has('force')) {
    causes.push({ reason: 'FieldValueForbidden', message: 'Forbidden: may not be specified for non-apply patch', field: 'force' });
  }
  if (causes.length > 0) throw new Refused(invalidOptions(kind, causes));
  return { dryRun: query.has('dryRun'), fieldValidation: fieldValidation as FieldValidation };
}

/** If duplicates are not refused, read-object.ts warns of some. */
export function duplicatesIn({ fieldValidation }: WriteOptions): Duplicates {
  return fieldValidation === 'Strict' ? 'refused' : 'last';
}

/**
 * Finalizers, propagation and grace period have no effect, because a delete takes effect at once.
 * They are checked all the same.
 */
export function parseDeleteOptions(query: URLSearchParams): DeleteOptions {
  const policy = query.get('propagationPolicy');
  const grace = query.get('gracePeriodSeconds');
  if (grace !== null) parseInteger(grace);
  const causes = [...dryRunCauses(query)];
  if (policy !== null && query.has('orphanDependents'))
    causes.push(invalidValue('propagationPolicy', policy, 'orphanDependents and deletionPropagation cannot be both set'));
  if (policy !== null && !propagationPolicies.includes(policy))
    causes.push(notSupported('propagationPolicy', policy, '"Foreground", "Background", "Orphan", "nil"'));
  if (isTrue(query.get(unsafeDelete)))
    causes.push({ reason: 'FieldValueForbidden', message: 'Forbidden: there is nothing here that cannot be read', field: unsafeDelete });
  if (causes.length > 0) throw new Refused(invalidOptions('DeleteOptions', causes));
  return {
    dryRun: query.has('dryRun'),
    uid: query.get('uid') ?? undefined,
    resourceVersion: query.get('resourceVersion') ?? undefined,
  };
}

function dryRunCauses(query: URLSearchParams): readonly Cause[] {
  return query
    .getAll('dryRun')
    .filter((text) => text !== 'All')
    .map((text) => notSupported('dryRun', text, '"All"'));
}

function isFieldValidation(text: string): text is FieldValidation {
  return text === 'Ignore' || text === 'Warn' || text === 'Strict';
}

function invalidValue(field: string, value: string, why: string): Cause {
  return { reason: 'FieldValueInvalid', message: `Invalid value: ${JSON.stringify(value)}: ${why}`, field };
}

function notSupported(field: string, value: string, supported: string): Cause {
  return {
    reason: 'FieldValueNotSupported',
    message: `Unsupported value: ${JSON.stringify(value)}: supported values: ${supported}`,
    field,
  };
}
