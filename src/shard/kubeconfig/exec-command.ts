/**
 * The `exec` entry of a kubeconfig's user, as client-go reads it
 * (plugin/pkg/client/auth/exec/exec.go). The plugin receives its input in KUBERNETES_EXEC_INFO, and
 * never a terminal, because nobody could answer there.
 */
import { resolve } from 'node:path';
import { itemsOf, membersOf, textAt, type Members } from '../../domain/base/members.js';

export type ExecCommand = Readonly<{
  /** The version of the plugin's output. */
  apiVersion: string;
  /** A path, or a name that is searched on PATH. */
  command: string;
  args: readonly string[];
  /** Variables added to the agent's own environment. */
  environment: Readonly<Record<string, string>>;
  /** How to install a missing plugin; '' if the entry does not say. */
  installHint: string;
  /**
   * The cluster without its CA, for the plugin; undefined unless the entry has
   * `provideClusterInfo`.
   */
  cluster: Members | undefined;
}>;

const apiVersions: readonly string[] = ['client.authentication.k8s.io/v1', 'client.authentication.k8s.io/v1beta1'];
const interactiveModes: readonly unknown[] = ['', 'Never', 'IfAvailable', 'Always'];
const infoVariable = 'KUBERNETES_EXEC_INFO';
/** The name that client-go reserves for the cluster extension that is meant for plugins. */
const extensionName = 'client.authentication.k8s.io/exec';
/** The members of a cluster that a plugin receives, except its CA, which is always sent as data. */
const clusterMembers = ['server', 'tls-server-name', 'insecure-skip-tls-verify', 'disable-compression'] as const;

/**
 * `folder`: the base of relative paths. `cluster`: the raw entry of the cluster in the file. Throws
 * Error with what is wrong.
 */
export function parseExecCommand(exec: unknown, { folder, cluster }: Readonly<{ folder: string; cluster: unknown }>): ExecCommand {
  const { apiVersion, command, args, env, installHint, interactiveMode, provideClusterInfo } = membersOf(exec);
  if (typeof command !== 'string' || command === '' || command.includes('\0')) throw new Error('exec.command is not a string');
  if (typeof apiVersion !== 'string' || !apiVersions.includes(apiVersion))
    throw new Error(`exec.apiVersion is not one of ${apiVersions.join(', ')}`);
  if (interactiveMode !== undefined && interactiveMode !== null && !interactiveModes.includes(interactiveMode))
    throw new Error(`exec.interactiveMode is not one of ${interactiveModes.slice(1).join(', ')}`);
  if (interactiveMode === 'Always') throw new Error(`exec.interactiveMode is Always, but nobody is there to answer ${command}`);
  if (provideClusterInfo !== undefined && provideClusterInfo !== null && typeof provideClusterInfo !== 'boolean')
    throw new Error('exec.provideClusterInfo is not a boolean');
  return {
    apiVersion,
    command: command.includes('/') ? resolve(folder, command) : command,
    args: listOf(args, 'exec.args').map((arg) => textOf(arg, 'exec.args')),
    environment: Object.fromEntries(
      listOf(env, 'exec.env').map((entry) => [textOf(membersOf(entry)['name'], 'exec.env'), textOf(membersOf(entry)['value'], 'exec.env')]),
    ),
    installHint: typeof installHint === 'string' ? installHint : '',
    cluster: provideClusterInfo === true ? describe(membersOf(cluster)) : undefined,
  };
}

/**
 * The plugin's whole environment: the agent's own, the entry's variables, and KUBERNETES_EXEC_INFO.
 */
export function pluginEnvironment(
  { apiVersion, environment, cluster }: ExecCommand,
  own: Readonly<Record<string, string | undefined>>,
  ca: string | undefined,
): Readonly<Record<string, string | undefined>> {
  const authority = ca === undefined ? {} : { 'certificate-authority-data': Buffer.from(ca).toString('base64') };
  const spec = { ...(cluster !== undefined && { cluster: { ...cluster, ...authority } }), interactive: false };
  return { ...own, ...environment, [infoVariable]: JSON.stringify({ kind: 'ExecCredential', apiVersion, spec }) };
}

function describe(cluster: Members): Members {
  const members = clusterMembers.flatMap((name) => (cluster[name] === undefined ? [] : [[name, cluster[name]]]));
  const extension = itemsOf(cluster['extensions']).find((each) => textAt(each, 'name') === extensionName);
  return { ...Object.fromEntries(members), ...(extension !== undefined && { config: membersOf(extension)['extension'] }) };
}

function listOf(value: unknown, what: string): readonly unknown[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) throw new Error(`${what} is not a list`);
  return value;
}

/** No error may repeat the value or its name: either can be a secret. */
function textOf(value: unknown, what: string): string {
  if (typeof value !== 'string' || value.includes('\0')) throw new Error(`${what} has values that are not strings`);
  return value;
}
