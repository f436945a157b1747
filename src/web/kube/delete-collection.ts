/**
 * DELETE of a collection deletes its objects page by page, each in its own delete, and answers with
 * the list of the deleted objects. As in Kubernetes, it is not atomic. Each page shows the present
 * state: a snapshot would have to outlast all deletes, and history may not have room for so many
 * changes.
 */
import { badRequest, Refused } from '../../domain/errors.js';
import type { Key } from '../../domain/key.js';
import { isSelected } from '../../domain/object-metadata.js';
import type { StoredObject } from '../../domain/object.js';
import { mustParse } from '../../domain/parsed.js';
import type { SnapshotPage } from '../../domain/store-port.js';
import type { Selector } from '../../domain/syntax/selector.js';
import type { Scope } from '../../domain/scope.js';
import { answeredAs, formOf, narrow, writeTargetOf, type Answer, type Call, type KubePorts } from './call.js';
import { listEncoding } from '../formats/encodings.js';
import { answerList, listBytes } from './list.js';
import { parseListOptions, type ListOptions } from './list-options.js';
import type { ObjectForm } from '../formats/object-form.js';
import { readDeleteOptions, type DeleteOptions } from './write-options.js';

export async function removeCollection(call: Call, ports: KubePorts): Promise<Answer> {
  const answered = answeredAs(call, 'list');
  const form = formOf(call, answered, ports.clock);
  writeTargetOf(call);
  const listOptions = mustParse(parseListOptions(call.query, ports.limits));
  if (listOptions.continueToken !== undefined)
    throw new Refused(badRequest('deletecollection begins with the first object: continue is not supported'));
  const options = await readDeleteOptions(call, ports.limits.bodyBytesMax);
  assertPresent(listOptions, options);
  const { scope, selector } = narrow(call, listOptions.selector);
  const removed = removing(call, { scope, selector, listOptions, options, form }, ports);
  const { revisions } = ports;
  const metadata = (): object => ({ resourceVersion: revisions.format(revisions.published) });
  return answerList(call, listBytes(removed, form, metadata), answered, ports);
}

/**
 * Throws Refused(400) if the list names a revision. If the request has no body, a resourceVersion
 * is a precondition instead, as in Kubernetes.
 */
function assertPresent({ resourceVersion, match }: ListOptions, options: DeleteOptions): void {
  const isPresent = ['', '0', options.resourceVersion].includes(resourceVersion);
  if (match !== undefined || !isPresent)
    throw new Refused(badRequest('a collection is deleted in its newest state: give a resourceVersion only as a precondition'));
}

type Removal = Readonly<{ scope: Scope; selector: Selector; listOptions: ListOptions; options: DeleteOptions; form: ObjectForm }>;

async function* removing(call: Call, removal: Removal, ports: KubePorts): AsyncGenerator<Uint8Array> {
  const { options, form } = removal;
  const encoding = listEncoding(form);
  // If a precondition fails for one object, nothing is deleted.
  const isConditional = options.uid !== undefined || options.resourceVersion !== undefined;
  if (isConditional && !options.dryRun)
    for await (const selected of selectedPages(call, removal, ports)) await removeAll(call, selected, { ...options, dryRun: true }, ports);
  for await (const selected of selectedPages(call, removal, ports)) {
    const removed = await removeAll(call, selected, options, ports);
    if (removed.length > 0) yield encoding.encode(removed);
  }
}

/** Ends at the limit, or when the exchange is over. */
async function* selectedPages(
  { exchange }: Call,
  { scope, selector, listOptions }: Removal,
  ports: KubePorts,
): AsyncGenerator<readonly StoredObject[]> {
  let left = listOptions.limit === 0 ? Infinity : listOptions.limit;
  let after: Key | undefined;
  do {
    await exchange.turn();
    if (exchange.isOver) return;
    const page = await presentPage(scope, after, ports);
    const selected = page.objects.filter((object) => isSelected(object, selector)).slice(0, left);
    left -= selected.length;
    yield selected;
    after = page.next;
  } while (after !== undefined && left > 0);
}

async function presentPage(scope: Scope, after: Key | undefined, { objects, revisions }: KubePorts): Promise<SnapshotPage> {
  const snapshot = objects.snapshot(scope, revisions.published);
  try {
    return await snapshot.page(after);
  } finally {
    snapshot.close();
  }
}

/**
 * Deletes the objects concurrently, and returns those that it deleted. Another caller may have
 * deleted the rest.
 */
async function removeAll(
  call: Call,
  objects: readonly StoredObject[],
  options: DeleteOptions,
  { intake }: KubePorts,
): Promise<readonly StoredObject[]> {
  const { exchange, type } = call;
  const remove = (key: Key): Promise<StoredObject | undefined> =>
    intake.delete({ ...options, caller: exchange.caller, asker: exchange, type, key }).catch(unlessGone);
  const removed = await Promise.all(objects.map(({ key }) => remove(key)));
  return removed.filter((object) => object !== undefined);
}

function unlessGone(error: unknown): undefined {
  if (error instanceof Refused && error.refusal.reason === 'NotFound') return undefined;
  throw error;
}
