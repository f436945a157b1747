/**
 * Kubernetes' rules for the metadata of a plain write, except names and labels (check-meta.ts).
 * Refusals have Kubernetes' wording. ValidateObjectMeta covers every write;
 * ValidateObjectMetaUpdate and BeforeUpdate cover a write that replaces a stored object.
 *
 * Pushes are exempt: a replica is what its shard has, and the shard has checked it. The JSON types
 * of all members are checked already (meta-shape.ts). A member that is null counts as missing, as
 * in Go.
 *
 * Bounds: `causesMax` causes of each field. A list or an owner is quoted up to `quotedMax`
 * characters, because many causes could quote it.
 * https://pkg.go.dev/k8s.io/apimachinery/pkg/api/validation
 */
import { Buffer } from 'node:buffer';
import { invalidValue, tooLong, type Cause } from '../../domain/errors.js';
import { labelKeyFlaws } from '../../domain/syntax/label-syntax.js';
import { itemsOf, membersOf, textAt, type Members } from '../../domain/base/members.js';
import type { Body } from '../../domain/object.js';
import type { ObjectMeta } from '../../json/object-meta.js';
import { formatTimestamp, isTimestamp } from '../../domain/syntax/timestamp.js';
import { member, scanObject, valueText, type Members as TextMembers } from '../../json/object-text.js';

const causesMax = 100;
const quotedMax = 1024;
const managerBytesMax = 128;
const subresourceBytesMax = 256;

export function plainCauses({ decoded }: ObjectMeta): readonly Cause[] {
  return [
    ...ownerCauses(listOf(decoded, 'ownerReferences').map(ownerOf)),
    ...finalizerCauses(finalizersOf(decoded)),
    ...managedFieldCauses(listOf(decoded, 'managedFields')),
  ];
}

/**
 * A write may neither begin a deletion, nor change its grace period, nor add finalizers during it.
 * Kubernetes keeps a stored deletionTimestamp, whatever is sent.
 */
export function deletionCauses({ decoded, deletionGracePeriodSeconds: grace }: ObjectMeta, stored: StoredMeta): readonly Cause[] {
  const storedGrace = presentText(stored, 'deletionGracePeriodSeconds');
  const causes: Cause[] = [];
  if (presentText(stored, 'deletionTimestamp') !== undefined) causes.push(...newFinalizerCauses(finalizersOf(decoded), stored));
  else if (typeof decoded['deletionTimestamp'] === 'string')
    causes.push(immutable('deletionTimestamp', JSON.stringify(normalTime(decoded['deletionTimestamp']))));
  if (grace !== undefined && String(grace) !== storedGrace) causes.push(immutable('deletionGracePeriodSeconds', String(grace)));
  return causes;
}

/** The members in the order in which Go writes them. */
type Owner = Readonly<{ apiVersion: string; kind: string; name: string; uid: string; controller?: boolean; blockOwnerDeletion?: boolean }>;

function ownerOf(member: Members): Owner {
  const { controller, blockOwnerDeletion } = member;
  return {
    apiVersion: textIn(member, 'apiVersion'),
    kind: textIn(member, 'kind'),
    name: textIn(member, 'name'),
    uid: textIn(member, 'uid'),
    ...(typeof controller === 'boolean' && { controller }),
    ...(typeof blockOwnerDeletion === 'boolean' && { blockOwnerDeletion }),
  };
}

function ownerCauses(owners: readonly Owner[]): readonly Cause[] {
  const field = 'metadata.ownerReferences';
  const causes: Cause[] = [];
  let controller: string | undefined;
  let all: string | undefined;
  for (const owner of owners) {
    const { group, version } = groupVersionOf(owner.apiVersion);
    if (version === '') causes.push(invalidValue(`${field}.apiVersion`, owner.apiVersion, 'version must not be empty'));
    for (const member of ['kind', 'name', 'uid'] as const)
      if (owner[member] === '') causes.push(invalidValue(`${field}.${member}`, '', 'must not be empty'));
    if (group === '' && version === 'v1' && owner.kind === 'Event')
      causes.push(quotedInvalid(field, JSON.stringify(owner), '/v1, Kind=Event is disallowed from being an owner'));
    if (owner.controller === true) {
      const found = quoted(`${owner.kind}/${owner.name}`);
      const both = `Only one reference can have Controller set to true. Found "true" in references for ${controller} and ${found}`;
      if (controller !== undefined) causes.push(quotedInvalid(field, (all ??= JSON.stringify(owners)), both));
      controller ??= found;
    }
    if (causes.length >= causesMax) break;
  }
  return causes;
}

/** As in Go, a text with more than one '/' gives an empty group and an empty version. */
function groupVersionOf(apiVersion: string): Readonly<{ group: string; version: string }> {
  const parts = apiVersion.split('/');
  const [group = '', version = ''] = parts.length === 1 ? ['', ...parts] : parts;
  return parts.length > 2 ? { group: '', version: '' } : { group, version };
}

function finalizerCauses(finalizers: readonly string[]): readonly Cause[] {
  const field = 'metadata.finalizers';
  const causes: Cause[] = [];
  for (const finalizer of finalizers) {
    causes.push(...labelKeyFlaws(finalizer).map((flaw) => invalidValue(field, finalizer, flaw)));
    if (causes.length >= causesMax) break;
  }
  if (finalizers.includes('orphan') && finalizers.includes('foregroundDeletion'))
    causes.push(quotedInvalid(field, JSON.stringify(finalizers), 'finalizer orphan and foregroundDeletion cannot be both set'));
  return causes;
}

function newFinalizerCauses(finalizers: readonly string[], stored: StoredMeta): readonly Cause[] {
  const before = new Set(finalizersOf({ finalizers: JSON.parse(presentText(stored, 'finalizers') ?? 'null') as unknown }));
  const added = [...new Set(finalizers)].filter((finalizer) => !before.has(finalizer)).toSorted();
  if (added.length === 0) return [];
  const found = quoted(added.map((finalizer) => JSON.stringify(finalizer)).join(', '));
  const message = `Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{${found}}`;
  return [{ reason: 'FieldValueForbidden', message, field: 'metadata.finalizers' }];
}

function managedFieldCauses(entries: readonly Members[]): readonly Cause[] {
  const causes: Cause[] = [];
  for (const [i, entry] of entries.entries()) {
    const field = `metadata.managedFields[${i}]`;
    const [operation = '', fieldsType = '', manager = '', subresource = ''] = ['operation', 'fieldsType', 'manager', 'subresource'].map(
      (name) => textIn(entry, name),
    );
    if (operation !== 'Apply' && operation !== 'Update')
      causes.push(invalidValue(`${field}.operation`, operation, 'must be `Apply` or `Update`'));
    if (fieldsType !== '' && fieldsType !== 'FieldsV1') causes.push(invalidValue(`${field}.fieldsType`, fieldsType, 'must be `FieldsV1`'));
    causes.push(...managerCauses(`${field}.manager`, manager));
    if (Buffer.byteLength(subresource) > subresourceBytesMax) causes.push(tooLong(`${field}.subresource`, subresourceBytesMax));
    if (causes.length >= causesMax) break;
  }
  return causes;
}

/** Go's unicode.IsPrint: letters, marks, numbers, punctuation, symbols, and the ASCII space. */
const unprintable = /[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/gu;

function managerCauses(field: string, manager: string): readonly Cause[] {
  if (Buffer.byteLength(manager) > managerBytesMax) return [tooLong(field, managerBytesMax)];
  return [...manager.matchAll(unprintable)].map(({ 0: character, index }) => {
    const code = character.codePointAt(0)?.toString(16).toUpperCase().padStart(4, '0');
    const position = Buffer.byteLength(manager.slice(0, index));
    return invalidValue(field, manager, `invalid character U+${code} (at position ${position})`);
  });
}

/** A stored member as JSON text; undefined if it is missing or null. */
function presentText(stored: StoredMeta, name: string): string | undefined {
  const text = stored.text(name);
  return text === 'null' ? undefined : text;
}

function listOf(decoded: Members, name: string): readonly Members[] {
  return itemsOf(decoded[name]).map(membersOf);
}

function finalizersOf({ finalizers }: Members): readonly string[] {
  return itemsOf(finalizers).map((finalizer) => (typeof finalizer === 'string' ? finalizer : ''));
}

function textIn(member: Members, name: string): string {
  return textAt(member, name) ?? '';
}

function normalTime(text: string): string {
  return isTimestamp(text) ? formatTimestamp(Date.parse(text)) : text;
}

function immutable(member: string, shown: string): Cause {
  return { reason: 'FieldValueInvalid', message: `Invalid value: ${shown}: field is immutable`, field: `metadata.${member}` };
}

function quotedInvalid(field: string, json: string, flaw: string): Cause {
  return { reason: 'FieldValueInvalid', message: `Invalid value: ${quoted(json)}: ${flaw}`, field };
}

function quoted(text: string): string {
  return text.length > quotedMax ? `${text.slice(0, quotedMax)} ...` : text;
}

/** Parses only the requested members. */
export class StoredMeta {
  readonly #bytes: Uint8Array;
  readonly #members: TextMembers;

  constructor({ bytes, marks: { metadataStart, metadataEnd } }: Body) {
    this.#bytes = bytes.subarray(metadataStart, metadataEnd);
    this.#members = scanObject(this.#bytes, Infinity).top;
  }

  text(name: string): string | undefined {
    const found = member(this.#members, name);
    return found === undefined ? undefined : valueText(this.#bytes, found);
  }

  get uid(): string {
    const value: unknown = JSON.parse(this.text('uid') ?? '""');
    return typeof value === 'string' ? value : '';
  }

  /** 0 if it is missing, as in Go. */
  get generation(): bigint {
    const literal = this.text('generation') ?? '0';
    return literal === 'null' ? 0n : BigInt(literal);
  }
}
