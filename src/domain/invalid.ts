/** Builds a 422, in the words of apimachinery's aggregate of field errors. */
import type { Cause, Refusal } from './errors.js';
import { formatGroupResource } from './resource.js';

/** A body of 3 MiB could cause hundreds of thousands, and nobody needs more. */
const causesMax = 100;

/** The invalid object. `kind` is the Kind, or the plural resource where upstream puts that. */
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
