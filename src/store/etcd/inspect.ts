/**
 * Checks every key that etcd holds for a cache, and reports keys that no server would serve. Writes
 * nothing.
 */
import type { Clock } from '../../domain/ports.js';
import { CacheError } from '../../domain/errors.js';
import type { Revision } from '../../domain/revision.js';
import { problemsMax, type CheckResult } from '../damaged-store.js';
import { EtcdClient } from './client.js';
import { EtcdError } from './etcd-error.js';
import { listed } from './listing.js';
import { isOfUpstream, keyText, parseObjectKey } from './object-keys.js';
import { everyKey, isRecordKey, parseRecord, parseRecordKey } from './records.js';
import type { KeyValue } from './rpc.js';
import { readValue, Unreadable } from './stored-values.js';
import type { EtcdOptions } from './store-options.js';

export type InspectedEtcd = Readonly<{ revision: Revision; checks: readonly CheckResult[] }>;

/** Reads all keys at one revision, page by page. Throws CacheError. */
export async function inspectEtcd(options: EtcdOptions, clock: Clock): Promise<InspectedEtcd> {
  const client = new EtcdClient({ clock }, options);
  const steps = { objects: new Step('objects'), records: new Step('records'), others: new Step('others') };
  let revision: Revision = 0;
  try {
    for await (const page of listed(client, everyKey(options.prefix), { at: 0 })) {
      revision = page.revision;
      for (const kv of page.kvs) look(options.prefix, kv, steps);
    }
  } catch (error) {
    if (error instanceof EtcdError) throw new CacheError(`the store in etcd cannot be read: ${error.message}`, { cause: error });
    throw error;
  } finally {
    client.close();
  }
  return { revision, checks: Object.values(steps).map((step) => step.checked) };
}

type Steps = Readonly<Record<'objects' | 'records' | 'others', Step>>;

function look(prefix: string, { key, value }: KeyValue, { objects, records, others }: Steps): void {
  const text = keyText(key);
  if (isOfUpstream(prefix, text)) return;
  if (isRecordKey(prefix, text)) {
    const recordKey = parseRecordKey(prefix, text);
    // Records of later versions of this engine are skipped.
    if (recordKey !== undefined)
      records.add(parseRecord(recordKey, value) === undefined ? `${text}: its value is not a record of this engine` : undefined);
    return;
  }
  const objectKey = parseObjectKey(prefix, text);
  if (objectKey === undefined) return others.add(`${text}: it is not the key of an object`);
  try {
    readValue(objectKey, value);
    objects.add(undefined);
  } catch (error) {
    if (!(error instanceof Unreadable)) throw error;
    objects.add(`${text}: ${error.message}`);
  }
}

class Step {
  readonly #what: string;
  readonly #problems: string[] = [];
  #examined = 0;

  constructor(what: string) {
    this.#what = what;
  }

  get checked(): CheckResult {
    return { what: this.#what, examined: this.#examined, problems: this.#problems };
  }

  add(problem: string | undefined): void {
    this.#examined += 1;
    if (problem !== undefined && this.#problems.length < problemsMax) this.#problems.push(problem);
  }
}
