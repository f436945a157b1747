/**
 * Which of Go's decoders refuse each case, by the name of the case; '' where all accept it.
 * `test/clients/record-verdicts.ts` recorded them.
 */
import { readFileSync } from 'node:fs';
import { kcpTypes } from '../../../src/domain/catalogue/catalogue-kcp.js';
import { mustParse, type Parsed } from '../../../src/domain/parsed.js';
import type { Push } from '../../../src/domain/push.js';
import { admitObject } from '../../../src/intake/admit/admit-push.js';
import { ownBuffer } from '../../../src/json/text-edits.js';
import { aKey } from '../objects.js';
import { projectFile } from '../project.js';
import { minefield, type MinefieldCase } from './minefield.js';
import { objectCases } from './object-cases.js';

export type Verdicts = Readonly<Record<'values' | 'sent' | 'stored', Readonly<Record<string, string>>>>;

export const verdictsFile = projectFile('test', 'support', 'json', 'go-verdicts.json');
export const roleKey = aKey({ group: 'rbac.authorization.k8s.io', resource: 'clusterroles', cluster: 'acme' });

export function recordedVerdicts(): Verdicts {
  return JSON.parse(readFileSync(verdictsFile, 'utf8')) as Verdicts;
}

/** The result of a shard's push of this object. */
export function admitted(text: Uint8Array): Parsed<Push> {
  const type = kcpTypes.find(({ resource }) => resource === roleKey.resource.resource);
  if (type === undefined) throw new Error('there is no such type');
  return admitObject(
    { cluster: roleKey.cluster, namespace: '', name: roleKey.name, sourceVersion: '1', body: text },
    {
      type,
      resource: roleKey.resource,
      version: 'v1',
      shard: roleKey.shard,
      by: { kind: 'pusher', term: 1 },
      bodyBytesMax: Infinity,
      systemClusters: new Set(),
      allocate: ownBuffer,
    },
  );
}

/** The cases that were given to Go: documents, objects as sent, and the accepted ones as stored. */
export function askedOfGo(): Readonly<Record<keyof Verdicts, readonly MinefieldCase[]>> {
  const stored = objectCases.flatMap(({ name, text }) => {
    const admission = admitted(text);
    if (admission.kind === 'refused') return [];
    const push = mustParse(admission);
    return push.kind === 'upsert' ? [{ name, text: push.body.bytes }] : [];
  });
  return { values: minefield, sent: objectCases, stored };
}
