/** Why an object is not admitted, in upstream's words (contract E3, E3a). */
import type { Cause, Refusal } from '../domain/errors.js';
import type { Key } from '../domain/key.js';
import { formatGroupResource } from '../domain/resource.js';

/** More of them help nobody; a body of 3 MiB could have hundreds of thousands. */
const causesMax = 100;

/** What is invalid: `kind` is the Kind, but the plural resource where the contract asks for it (E3a). */
export type Subject = Readonly<{ group: string; kind: string; name: string }>;

export function invalid({ group, kind, name }: Subject, all: readonly Cause[]): Refusal {
  const causes = all.slice(0, causesMax);
  const texts = [...new Set(causes.map(({ field, message }) => `${field}: ${message}`))];
  const list = texts.length === 1 ? texts[0] : `[${texts.join(', ')}]`;
  return {
    reason: 'Invalid',
    message: `${formatGroupResource({ group, resource: kind })} ${JSON.stringify(name)} is invalid: ${list}`,
    details: { ...(name !== '' && { name }), ...(group !== '' && { group }), kind, causes },
  };
}

export function invalidValue(field: string, value: string | bigint, flaw: string): Cause {
  const shown = typeof value === 'string' ? JSON.stringify(value) : String(value);
  return { reason: 'FieldValueInvalid', message: `Invalid value: ${shown}: ${flaw}`, field };
}

export function conflict({ resource: { group, resource }, name }: Key, why: string): Refusal {
  return {
    reason: 'Conflict',
    message: `Operation cannot be fulfilled on ${formatGroupResource({ group, resource })} ${JSON.stringify(name)}: ${why}`,
    details: { name, ...(group !== '' && { group }), kind: resource },
  };
}

/** A namespaced type without a namespace: upstream has no such URL. */
export function noSuchResource({ group, resource }: Readonly<{ group: string; resource: string }>): Refusal {
  return {
    reason: 'NotFound',
    message: 'the server could not find the requested resource',
    details: { ...(group !== '' && { group }), kind: resource },
  };
}
