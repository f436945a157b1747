/** Query options of writes. */
import { Refused, type Cause } from '../domain/errors.js';
import type { FieldValidation } from '../domain/write-request.js';
import { invalidOptions } from './list-options.js';

export type WriteOptions = Readonly<{ dryRun: boolean; fieldValidation: FieldValidation }>;

const fieldManagerCharactersMax = 128;

/** `kind` names the options in a refusal: CreateOptions, UpdateOptions, PatchOptions, DeleteOptions. */
export function parseWriteOptions(query: URLSearchParams, kind: string): WriteOptions {
  const causes: Cause[] = [];
  const dryRun = query.getAll('dryRun').filter((text) => text !== '');
  for (const text of dryRun) if (text !== 'All') causes.push(notSupported('dryRun', text, '"All"'));
  const fieldValidation = query.get('fieldValidation') || 'Warn';
  if (!isFieldValidation(fieldValidation)) causes.push(notSupported('fieldValidation', fieldValidation, '"Ignore", "Strict", "Warn"'));
  const manager = query.get('fieldManager') ?? '';
  if (manager.length > fieldManagerCharactersMax) {
    causes.push({
      reason: 'FieldValueTooLong',
      message: `Too long: may not be more than ${fieldManagerCharactersMax} bytes`,
      field: 'fieldManager',
    });
  }
  if (!/^\P{C}*$/u.test(manager)) {
    causes.push({
      reason: 'FieldValueInvalid',
      message: `Invalid value: ${JSON.stringify(manager)}: should only contain printable characters`,
      field: 'fieldManager',
    });
  }
  if (kind === 'PatchOptions' && query.has('force')) {
    causes.push({ reason: 'FieldValueForbidden', message: 'Forbidden: may not be specified for non-apply patch', field: 'force' });
  }
  if (causes.length > 0) throw new Refused(invalidOptions(kind, causes));
  return { dryRun: dryRun.length > 0, fieldValidation: fieldValidation as FieldValidation };
}

function isFieldValidation(text: string): text is FieldValidation {
  return text === 'Ignore' || text === 'Warn' || text === 'Strict';
}

function notSupported(field: string, value: string, supported: string): Cause {
  return {
    reason: 'FieldValueNotSupported',
    message: `Unsupported value: ${JSON.stringify(value)}: supported values: ${supported}`,
    field,
  };
}
