/**
 * Runs Helm on the chart: the program that TEST_HELM_BIN names, else an installed one. If there is
 * none, Go builds one from the module beside this file, once, into a folder that later runs find.
 */
import { readdirSync } from 'node:fs';
import type { ImplementationFn } from 'ava';
import { parseAllDocuments } from 'yaml';
import { projectFile } from '../../support/project.js';
import { test } from '../../support/test.js';
import { askInLines, buildGoProgramOnce, installed, runProgram, type Ran } from '../installed.js';

export const chart = projectFile('deploy', 'helm', 'strata');
/** File names without `.yaml`. */
export const examples = readdirSync(`${chart}/examples`)
  .map((name) => name.replace(/\.yaml$/, ''))
  .toSorted();

/** A document in the output of `helm template`. */
export type Rendered = Readonly<{
  apiVersion: string;
  kind: string;
  metadata: Readonly<{ name: string; labels?: Readonly<Record<string, string>> }>;
  spec?: unknown;
  data?: Readonly<Record<string, string>>;
}>;

/** `sets`: values as JSON by path, which override those of the example. */
export type Release = Readonly<{ name: string; example: string; sets?: Readonly<Record<string, unknown>> }>;

const module = projectFile('test', 'clients', 'chart');
const buildMsMax = 590_000;
const testMsMax = 300_000;
/** A Helm that Go has built assumes Kubernetes 1.20. */
const kubeVersion = ['--kube-version', '1.31.0'];

let found: Promise<{ program: string } | { why: string }> | undefined;

/** A test that needs Helm; skipped with a log line if there is none. */
export function helmTest(title: string, body: ImplementationFn<[]>): void {
  test(title, async (t) => {
    found ??= find();
    const here = await found;
    if ('why' in here) {
      t.log(`SKIPPED: no helm, and Go cannot build one: ${here.why}`);
      t.pass();
      return;
    }
    t.timeout(testMsMax);
    await body(t);
  });
}

export async function lint(values: readonly string[]): Promise<Ran> {
  return helm('lint', chart, '--strict', ...values, ...kubeVersion);
}

/** Rejects with Helm's message if it renders nothing. */
export async function render({ name, example, sets = {} }: Release): Promise<readonly Rendered[]> {
  const { code, stdout, stderr } = await template(name, [
    ...valuesOf(example),
    ...Object.entries(sets).flatMap(([path, value]) => ['--set-json', `${path}=${JSON.stringify(value)}`]),
  ]);
  if (code !== 0) throw new Error(stderr);
  // Helm and Kubernetes read YAML 1.1.
  return parseAllDocuments(stdout, { version: '1.1' }).flatMap((document) => (document.toJS() as Rendered | null) ?? []);
}

export async function template(release: string, values: readonly string[]): Promise<Ran> {
  return helm('template', release, chart, '--namespace', 'kcp', ...values, ...kubeVersion);
}

export function valuesOf(example: string): readonly string[] {
  return ['--values', `${chart}/examples/${example}.yaml`];
}

/**
 * Builds the program that decodes documents as Kubernetes, cert-manager and the Prometheus operator
 * do, and refuses unknown fields.
 */
export function buildStrictDecoder(): Promise<{ program: string } | { why: string }> {
  return buildGoProgramOnce('strict-decoder-1', { source: '.', module, timeoutMs: buildMsMax });
}

/** Why each document is refused; '' if it is not. */
export async function refusals({ program }: Readonly<{ program: string }>, documents: readonly unknown[]): Promise<readonly string[]> {
  const asked = documents.map((document) => ({ document: Buffer.from(JSON.stringify(document)).toString('base64') }));
  return (await askInLines(program, asked)).map((answer) => (answer as { refused: string }).refused);
}

async function helm(...args: readonly string[]): Promise<Ran> {
  const here = await found;
  if (here === undefined || 'why' in here) throw new Error('no helm');
  return runProgram(here.program, args, { timeoutMs: 60_000 });
}

async function find(): Promise<{ program: string } | { why: string }> {
  const named = process.env['TEST_HELM_BIN'];
  if (named !== undefined) return { program: named };
  if ((await installed('helm', 'version')) !== undefined) return { program: 'helm' };
  return buildGoProgramOnce('helm-3.22.0', { source: 'helm.sh/helm/v3/cmd/helm', module, timeoutMs: buildMsMax });
}
