/**
 * Decides the namespace of a write.
 *
 *   type         URL        body          namespace
 *   namespaced   default    – or default  default
 *   namespaced   default    other         400
 *   namespaced   –          team          team for a declared type, else 404
 *   namespaced   –          –             404
 *   cluster      –          any           none: the namespace in the body is dropped
 *
 * kcp's replication leaves the namespace of a declared type out of the URL.
 */
import type { ServedType } from '../../domain/catalogue/catalogue.js';
import type { MetadataStamp } from '../../json/compose.js';
import { badRequest, Refused } from '../../domain/errors.js';
import { noSuchResource } from './refusals.js';

export type NamespaceRequest = Readonly<{ type: ServedType; identity: string; namespace: string | undefined }>;

/** Returns '' for a cluster-scoped type. Throws Refused. */
export function chooseNamespace({ type, identity, namespace }: NamespaceRequest, inBody: string): string {
  if (!type.namespaced) return '';
  if (namespace === undefined) {
    if (identity === '' || inBody === '') throw new Refused(noSuchResource(type));
    return inBody;
  }
  if (inBody !== '' && inBody !== namespace) throw mismatch();
  return namespace;
}

/** Throws Refused if the body names another namespace than the object it replaces. */
export function confirmNamespace(namespace: string, inBody: string): void {
  if (namespace !== '' && inBody !== '' && inBody !== namespace) throw mismatch();
}

/** The edit that gives the text this namespace; empty if the text has it already. */
export function namespaceStamp(namespace: string, inBody: string): MetadataStamp {
  if (namespace === inBody) return {};
  return { namespace: namespace === '' ? undefined : JSON.stringify(namespace) };
}

function mismatch(): Refused {
  return new Refused(badRequest('the namespace of the provided object does not match the namespace sent on the request'));
}
