/**
 * A cache and its neighbours for people, from the top down: the parent, the cache itself, its
 * children.
 *
 *   parent c-0 at https://root:6443: connected 3m12s
 *     received: up to 1234567000000000042; 3 of 3 slices current; digests compared 3 times, 41s ago
 *     sending: 14 of 14 slices current; all changes sent
 *     up: [{"types":["*"]}] at both ends
 *     down: [{"types":["*"]}] here; [] there
 *   cache c-1, eu-1, strata 0.1.0, ready, resourceVersion 1234567000000000007, 1 hop below the root
 *   child west …
 *   certificate serving /etc/strata/tls.crt (CN=localhost): until 2026-12-24, 32d left
 *
 * Control characters in texts that another cache chose are replaced, so that they cannot move the
 * reader's cursor.
 */
import { formatDuration } from '../config/options/quantity.js';
import type {
  CertificateStatus,
  ChildStatus,
  LinkStatus,
  ParentStatus,
  ReceivingStatus,
  SendingStatus,
  StatusReport,
} from '../domain/status.js';
import { formatConnection, printable } from './terminal-text.js';

/**
 * How many characters of a policy fit on one line of a terminal. Pipes and files get the whole
 * policy.
 */
export const policyCharactersOfTerminal = 160;
const indent = '  ';

/** `policyCharactersMax`: where a policy is cut; Infinity for never. */
export type TreeLinesOptions = Readonly<{ policyCharactersMax: number }>;

export function treeLines({ cache, tree, certificates }: StatusReport, options: TreeLinesOptions): readonly string[] {
  const ready = cache.ready ? 'ready' : 'not ready';
  const title = [`cache ${cache.id}`, `strata ${cache.version}`, ready, `resourceVersion ${cache.resourceVersion}`];
  if (tree === undefined) return [title.join(', ')];
  if (tree.name !== null) title.splice(1, 0, tree.name);
  if (!tree.complete) title.push('not complete');
  if (tree.parent !== null) title.push(tree.hops === null ? 'below an unknown root' : `${counted(tree.hops, 'hop')} below the root`);
  return [
    ...(tree.parent === null ? [] : parentLines(tree.parent, options)),
    printable(title.join(', ')),
    ...tree.children.flatMap((child) => childLines(child, options)),
    ...certificates.map(certificateLine),
  ];
}

function parentLines(parent: ParentStatus, options: TreeLinesOptions): readonly string[] {
  const { url, cacheId, connection, failures, message } = parent;
  const id = cacheId === null ? '' : ` ${cacheId}`;
  const trouble = failures === 0 ? '' : `, ${counted(failures, 'failure')}${message === null ? '' : `: ${message}`}`;
  return [printable(`parent${id} at ${url}: ${formatConnection(connection)}${trouble}`), ...linkLines(parent, options)];
}

function childLines(child: ChildStatus, options: TreeLinesOptions): readonly string[] {
  const { name, cacheId, connection, agent } = child;
  const id = cacheId === null ? '' : ` ${cacheId}`;
  const from = connection.kind === 'connected' ? ` from ${connection.peer}` : '';
  const program = agent === null ? '' : `, ${agent}`;
  return [printable(`child ${name}${id}: ${formatConnection(connection)}${from}${program}`), ...linkLines(child, options)];
}

function linkLines({ position, receiving, sending, policies }: LinkStatus, options: TreeLinesOptions): readonly string[] {
  const { own, other } = policies;
  return [
    `received: ${position === null ? 'nothing yet' : `up to ${position}`}; ${receivedOf(receiving)}`,
    ...(sending === null ? [] : [`sending: ${sentOf(sending)}`]),
    `up: ${policyOf(own.up, other?.up, options)}`,
    `down: ${policyOf(own.down, other?.down, options)}`,
  ].map((line) => printable(`${indent}${line}`));
}

function receivedOf({ slices, current, refused, compared, comparedAgoMs, differed, claimsIgnored }: ReceivingStatus): string {
  const parts = [`${current} of ${counted(slices, 'slice')} current`];
  if (comparedAgoMs !== null) parts.push(`digests compared ${counted(compared, 'time')}, ${formatDuration(comparedAgoMs)} ago`);
  if (differed > 0) parts.push(`DIFFERED ${counted(differed, 'time')}`);
  if (refused > 0) parts.push(`${counted(refused, 'object')} refused here`);
  if (claimsIgnored > 0) parts.push(`${counted(claimsIgnored, 'claim')} of shards ignored`);
  return parts.join('; ');
}

function sentOf({ slices, current, behind, lagMs, resynced, refused }: SendingStatus): string {
  const parts = [`${current} of ${counted(slices, 'slice')} current`];
  parts.push(behind === 0 && lagMs === 0 ? 'all changes sent' : `${counted(behind, 'change')} and ${formatDuration(lagMs)} behind`);
  if (resynced > 0) parts.push(`asked to resync ${counted(resynced, 'time')}`);
  if (refused > 0) parts.push(`${counted(refused, 'slice')} not accepted in full`);
  return parts.join('; ');
}

function policyOf(own: string, other: string | undefined, { policyCharactersMax }: TreeLinesOptions): string {
  const shortened = (text: string): string => (text.length > policyCharactersMax ? `${text.slice(0, policyCharactersMax)}…` : text);
  if (own === other) return `${shortened(own)} at both ends`;
  return `${shortened(own)} here; ${other === undefined ? 'not known' : shortened(other)} there`;
}

function certificateLine({ use, file, subject, notAfter, expiresInMs }: CertificateStatus): string {
  const left = expiresInMs > 0 ? `${formatDuration(expiresInMs)} left` : `EXPIRED ${formatDuration(-expiresInMs)} ago`;
  return printable(`certificate ${use} ${file} (${subject}): until ${notAfter.slice(0, 'YYYY-MM-DD'.length)}, ${left}`);
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}
