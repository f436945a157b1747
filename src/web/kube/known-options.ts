/**
 * Which parameters a request may have. Pure.
 *
 * OPTION-1 The server never ignores an option that it does not understand: it refuses the request
 *    and does nothing.
 * OPTION-2 If an option is given twice, both values must be the same; Kubernetes uses the first.
 *    `dryRun` is exempt, because it is a list.
 * OPTION-3 A write with an unknown parameter is refused. Otherwise `dryrun=All` or `dryRun[]=All`
 *    would not be a dry run. Kubernetes ignores such parameters; so do reads here.
 */
import { badRequest, Refused } from '../../domain/errors.js';
import { isRead, type Verb } from './kube-request.js';

const ofAll = ['pretty', 'timeout', 'includeObject'];
const ofWrites = [...ofAll, 'dryRun', 'fieldManager', 'fieldValidation'];
const ofDeletes = [
  ...ofAll,
  'dryRun',
  'gracePeriodSeconds',
  'ignoreStoreReadErrorWithClusterBreakingPotential',
  'orphanDependents',
  'propagationPolicy',
  'resourceVersion',
  'uid',
];
const ofSelections = ['continue', 'fieldSelector', 'labelSelector', 'limit', 'resourceVersion', 'resourceVersionMatch', 'timeoutSeconds'];
const ofReads = [...ofAll, ...ofSelections, 'allowWatchBookmarks', 'sendInitialEvents', 'watch'];
const options: Readonly<Record<Verb, readonly string[]>> = {
  create: ofWrites,
  update: ofWrites,
  patch: [...ofWrites, 'force'],
  delete: ofDeletes,
  deletecollection: [...ofDeletes, ...ofSelections],
  get: ofReads,
  list: ofReads,
  watch: ofReads,
};
const durationPattern = /^[+-]?(?:0|(?:(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+)$/;
const durationParts = /(\d*)(?:\.(\d*))?(ns|us|µs|μs|ms|s|m|h)/gy;
const unitNs: Readonly<Record<string, bigint>> = {
  ns: 1n,
  us: 1_000n,
  µs: 1_000n,
  μs: 1_000n,
  ms: 1_000_000n,
  s: 1_000_000_000n,
  m: 60_000_000_000n,
  h: 3_600_000_000_000n,
};
/** Further digits are worth less than a nanosecond. */
const fractionDigitsMax = 18;
const int64Max = 2n ** 63n - 1n;

/** Throws Refused(400). */
export function checkOptions(verb: Verb, query: URLSearchParams): void {
  const known = options[verb];
  if (!isRead(verb))
    for (const name of query.keys())
      if (!known.includes(name))
        throw new Refused(badRequest(`unknown parameter ${JSON.stringify(name)}: the options of ${verb} are ${known.join(', ')}`));
  checkRepeated(query, known);
  const timeout = query.get('timeout') ?? '';
  if (verb !== 'watch' && timeout !== '' && !isDuration(timeout))
    throw new Refused(badRequest(`invalid timeout specified in the request URL: ${JSON.stringify(timeout)}`));
}

/** Throws Refused(400) if an option is given several times with different values. */
export function checkRepeated(query: URLSearchParams, names: readonly string[] = ofDeletes): void {
  if (query.size < 2) return;
  const values = new Map<string, string>();
  for (const [name, value] of query) {
    const differs = (values.get(name) ?? value) !== value;
    if (differs && name !== 'dryRun' && names.includes(name))
      throw new Refused(badRequest(`the option ${JSON.stringify(name)} is given several times, with different values`));
    values.set(name, value);
  }
}

/** Whether Go's time.ParseDuration accepts the text: a duration has 64 bits of nanoseconds. */
function isDuration(text: string): boolean {
  if (!durationPattern.test(text)) return false;
  let ns = 0n;
  for (const [, whole = '', fraction = '', unit = ''] of text.replace(/^[+-]/, '').matchAll(durationParts)) {
    const digits = fraction.slice(0, fractionDigitsMax);
    ns += (BigInt(`${whole}${digits}`) * (unitNs[unit] ?? 0n)) / 10n ** BigInt(digits.length);
  }
  return ns <= (text.startsWith('-') ? int64Max + 1n : int64Max);
}
