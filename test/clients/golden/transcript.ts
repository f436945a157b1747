/**
 * Runs a scripted conversation with a server (basics.mjs), records it step by step, and compares
 * two such transcripts in what a client depends on. That is: status, reason and details of a
 * Status, the objects of a list or a watch and their places, and an object's content. It does not
 * compare member order, messages, uids and times.
 *
 * `deliberate.json` lists where Strata deliberately answers differently from kcp's own cache
 * server: step → Strata's answer, member by member of the essence. null means any answer, or that
 * the member is missing. Two members are not essence: `because` gives the reason, and `bookmarks:
 * "sent"` leaves bookmarks without an annotation out of the comparison of that step.
 */
import { readFile } from 'node:fs/promises';
import { pathToFileURL } from 'node:url';
import { setTimeout as sleep } from 'node:timers/promises';
import { parse, type Answer, type KubeClient, type KubeObject } from '../../support/kube-client.js';
import { projectFile } from '../../support/project.js';

const stepMsMax = 15_000;
const shownCharactersMax = 600;

/** One step of basics.upstream.jsonl. `answer` is the parsed JSON, a list of events, or text. */
export type Step = Readonly<{
  title: string;
  method: string;
  path: string;
  status?: number;
  type?: string;
  error?: string;
  answer: unknown;
}>;

/** The parts of one step that are compared. */
export type Essence = Readonly<Record<string, unknown>>;

export type Deliberate = Readonly<Record<string, Essence>>;

export type Difference = Readonly<{ title: string; want: Essence; got: Essence | 'missing' }>;

type CallOptions = Readonly<{ headers?: Readonly<Record<string, string>>; body?: unknown; maxMs?: number; quiet?: boolean }>;
type Called = Readonly<{ status: number | undefined; answer: unknown; raw: string; headers: Readonly<Record<string, string>> }>;
type Script = (
  tools: Readonly<{
    call: (title: string, method: string, path: string, options?: CallOptions) => Promise<Called>;
    sleep: (ms: number) => Promise<void>;
  }>,
) => Promise<void>;

/** The steps of a recorded transcript under test/clients/golden. */
export async function readTranscript(name: string): Promise<readonly Step[]> {
  const text = await readFile(projectFile('test', 'clients', 'golden', name), 'utf8');
  return text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Step);
}

/** Where Strata deliberately differs. */
export async function readDeliberate(): Promise<Deliberate> {
  return JSON.parse(await readFile(projectFile('test', 'clients', 'golden', 'deliberate.json'), 'utf8')) as Deliberate;
}

/**
 * Runs a script of test/clients/golden and records every step that is not marked quiet, in the
 * order of the answers.
 */
export async function runScript(name: string, client: KubeClient): Promise<readonly Step[]> {
  const script = (await import(pathToFileURL(projectFile('test', 'clients', 'golden', name)).href)) as { default: Script };
  const steps: Step[] = [];

  const call = async (
    title: string,
    method: string,
    path: string,
    { headers = {}, body, maxMs = stepMsMax, quiet = false }: CallOptions = {},
  ): Promise<Called> => {
    const answer = await client.raw(method, path, { headers, body, timeoutMs: maxMs }).catch((error: unknown) => String(error));
    const step = {
      title,
      method,
      path,
      ...(typeof answer === 'string'
        ? { error: answer, type: '', answer: '' }
        : { status: answer.status, type: answer.headers['content-type'] ?? '', answer: decoded(path, answer) }),
    };
    if (!quiet) steps.push(step);
    return typeof answer === 'string'
      ? { status: undefined, answer: '', raw: '', headers: {} }
      : { status: answer.status, answer: step.answer, raw: answer.text, headers: answer.headers };
  };

  await script.default({ call, sleep: (ms) => sleep(ms) });
  return steps;
}

/** Every step of `want` to which `got` has a different answer. */
export function compareTranscripts(want: readonly Step[], got: readonly Step[], deliberate: Deliberate): readonly Difference[] {
  const answered = new Map(got.map((step) => [step.title, step]));
  const expected = new Map(want.map((step) => [step.title, step]));
  return [...expected.values()].flatMap((step) => difference(step, answered.get(step.title), deliberate[step.title] ?? {}) ?? []);
}

/** A difference in words. */
export function formatDifference({ title, want, got }: Difference): string {
  const shown = (value: unknown): string => JSON.stringify(value).slice(0, shownCharactersMax);
  return `✗ ${title}\n    want ${shown(want)}\n    got  ${shown(got)}`;
}

/** What a client depends on in one step's answer. */
export function essence({ status, type, answer }: Pick<Step, 'status' | 'type' | 'answer'>, { withBookmarks = true } = {}): Essence {
  const out = { status };
  if (Array.isArray(answer)) {
    const events = (answer as readonly AnswerEvent[]).filter((event) => withBookmarks || !isPeriodicBookmark(event));
    return { ...out, events: events.map((event) => `${event.type} ${event.object?.kind} ${eventEssence(event.object ?? {})}`) };
  }
  const a = (answer ?? {}) as AnswerBody;
  if (a.kind === 'Status') {
    const details = a.details && {
      name: a.details.name,
      group: a.details.group,
      kind: a.details.kind,
      causes: a.details.causes?.map((cause) => `${cause.reason ?? ''} ${cause.field ?? ''}`),
    };
    return { ...out, kind: 'Status', outcome: a.status, reason: a.reason, details };
  }
  if (a.items)
    return {
      ...out,
      kind: a.kind,
      apiVersion: a.apiVersion,
      items: a.items.map(place),
      more: Boolean(a.metadata?.continue),
      remaining: a.metadata?.remainingItemCount,
    };
  if (a.kind === 'Table')
    return { ...out, kind: 'Table', columns: a.columnDefinitions?.map((column) => column.name), rows: a.rows?.length };
  if (a.metadata) {
    return {
      ...out,
      kind: a.kind,
      apiVersion: a.apiVersion,
      at: place(a),
      generation: a.metadata.generation,
      labels: a.metadata.labels,
      spec: a.spec,
      objStatus: a.status,
    };
  }
  return { ...out, type: type?.split(';')[0] };
}

/** Shard, cluster, namespace and name of an object, from its metadata. Generated names are cut. */
export function place(object: AnswerBody): string {
  const { annotations, namespace, name } = object.metadata ?? {};
  return [annotations?.['kcp.io/shard'], annotations?.['kcp.io/cluster'], namespace, name?.replace(/^gen-.*/, 'gen-')]
    .map((part) => part ?? '')
    .join('|');
}

/** JSON with sorted members, so that texts can be compared. */
export function sortedText(value: unknown): string {
  return JSON.stringify(sorted(value)) ?? 'undefined';
}

/** Members that tests read of any answer: an object, a list, a Status, a Table or discovery. */
export type AnswerBody = Readonly<{
  kind?: string;
  apiVersion?: string;
  status?: unknown;
  reason?: string;
  details?: Readonly<{ name?: string; group?: string; kind?: string; causes?: readonly Readonly<{ reason?: string; field?: string }>[] }>;
  metadata?: KubeObject['metadata'];
  items?: readonly AnswerBody[];
  spec?: unknown;
  rows?: readonly unknown[];
  columnDefinitions?: readonly Readonly<{ name: string }>[];
}>;

type AnswerEvent = Readonly<{ type?: string; object?: AnswerBody }>;

function difference(step: Step, answered: Step | undefined, own: Essence): Difference | undefined {
  const { bookmarks, because: _because, ...instead } = own;
  const statusOnly = typeof step.answer === 'string' && step.answer.startsWith('<the same object');
  const options = { withBookmarks: bookmarks !== 'sent' };
  const want: Record<string, unknown> = { ...(statusOnly ? { status: step.status } : essence(step, options)), ...instead };
  if (answered === undefined) return { title: step.title, want, got: 'missing' };

  const got: Record<string, unknown> = statusOnly ? { status: answered.status } : { ...essence(answered, options) };
  for (const [member, value] of Object.entries(want)) {
    if (value !== null && !isCut(value)) continue;
    delete want[member];
    delete got[member];
  }
  return sortedText(want) === sortedText(got) ? undefined : { title: step.title, want, got };
}

function decoded(path: string, { status, headers, text }: Answer): unknown {
  const isWatch = /[?&](watch=(1|true))/.test(path) && status === 200;
  if (isWatch)
    return text
      .split('\n')
      .filter(Boolean)
      .map((line) => parse(line) ?? line);
  return headers['content-type']?.includes('json') === true ? (parse(text) ?? text) : text;
}

function eventEssence(object: AnswerBody): string {
  if (object.kind === 'Status') return String(object.reason);
  return object.kind === 'Table' ? String(object.rows?.length) : place(object);
}

function isPeriodicBookmark(event: AnswerEvent): boolean {
  return event.type === 'BOOKMARK' && event.object?.metadata?.annotations?.['k8s.io/initial-events-end'] !== 'true';
}

/**
 * Whether the recording cut a body, as it did over 6,000 characters. What was cut is not compared.
 */
function isCut(value: unknown): boolean {
  return /<\d+ characters>|the same object back/.test(sortedText(value));
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(
    Object.entries(value)
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, member]) => [key, sorted(member)]),
  );
}
