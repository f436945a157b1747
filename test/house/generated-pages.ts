/**
 * The pages of docs/ that are generated from declarations, so that they cannot differ from them.
 * `npm run docs` writes them.
 */
import type { Surroundings } from '../../src/commands/command.js';
import { commands } from '../../src/commands/commands.js';
import { proxyOptions } from '../../src/config/options/command-options.js';
import { environmentName, type CommandOption, type Option } from '../../src/config/options/option.js';
import { configFileOption, options } from '../../src/config/options/options.js';
import { agentMetricTable, frontDoorMetricTable, metricTable, type MetricTable } from '../../src/diagnostics/metric-table.js';

/** Renders each page, by the path of the page. */
export const generatedPages: Readonly<Record<string, () => string>> = {
  'docs/commands.md': commandsPage,
  'docs/options.md': optionsPage,
  'docs/metrics.md': metricsPage,
};

function commandsPage(): string {
  // Declaring a command uses nothing of its surroundings.
  const declared = commands.map((declare) => declare({} as Surroundings));
  const rows = declared.map(({ words, operands, help }) => [code(`strata ${[...words, operands].join(' ').trim()}`), `${help}.`]);
  const ownExitCodes = declared
    .flatMap(({ words, exitCodes = {} }) =>
      Object.entries(exitCodes).map(([exitCode, meaning]) => `| ${exitCode} | ${code(`strata ${words.join(' ')}`)}: ${meaning} |`),
    )
    .join('\n');
  const rest = [
    [code('strata serve'), 'Run a cache server.'],
    [code('strata cache-server'), 'Run it in place of kcp’s, with the flags of kcp’s.'],
    [code('strata proxy'), 'Run the front door of an installation, which sends each request to the shard that its path leads to.'],
    [code('strata kcp-front-proxy'), 'Run it in place of kcp’s, with the flags of kcp’s.'],
    [code('strata completion <shell>'), 'Print the script by which bash, zsh or fish completes commands and flags.'],
  ];
  return `# Commands

${table(['command', 'what it does'], [...rest, ...rows])}
[options.md](options.md) has their flags. \`--help\` behind any of them shows its own.

Commands that ask a cache reach it, and say who asks, by \`--cache\`, \`--ca-file\`, \`--cert-file\` and \`--key-file\`, or by \`--cache-kubeconfig\`, as \`strata kubeconfig\` prints one; not both. \`strata push\` and \`strata kubeconfig\` itself take no such file:

\`\`\`sh
umask 077
strata kubeconfig --cache https://localhost:6443 --ca-file strata-ca/ca.crt --cert-file admin.crt --key-file admin.key > cache.kubeconfig
export STRATA_CACHE_KUBECONFIG=$PWD/cache.kubeconfig
strata status --watch
source <(strata completion bash)
\`\`\`

| exit code | when |
| --- | --- |
| 0 | it is done |
| 1 | it failed: standard error has one line that says why |
| 2 | it was called wrongly: standard error says how |
${ownExitCodes}

\`--help\` behind a command lists its exit codes.

Flags are read as in kcp's own programs: \`--name value\` or \`--name=value\`. A boolean stands alone (\`--access-log\`) or has its value behind \`=\` (\`--access-log=false\`); the
next argument is never its value. Behind \`--\` there are no flags.

\`strata push\` has more, in [push.md](push.md#exit-codes).
`;
}

function optionsPage(): string {
  const server = Object.values<Option<unknown>>(options).map((option) => [
    code(`--${option.flag}`),
    code(environmentName(option)),
    code(option.yaml),
    defaultOf(option),
    `${option.help} Takes ${option.acceptedValues}.`,
  ]);
  const config = [code(`--${configFileOption.flag}`), code(environmentName(configFileOption)), '–', '–', configFileOption.help];
  return `# Options of the server

Each is a flag of \`strata serve\` and of \`strata proxy\`, an environment variable, and a key of the file that \`--config\` names. A flag wins over a variable, a
variable over the file.

${table(['flag', 'environment', 'file', 'default', 'what it does'], [config, ...server])}
## Options of the other commands

${table(['flag', 'environment', 'default', 'of', 'what it does'], commandRows())}`;
}

/** An option that several commands share is one row. */
function commandRows(): readonly (readonly string[])[] {
  const commandsByRow = new Map<string, string[]>();
  const rows = new Map<string, readonly string[]>();
  // Declaring a command uses nothing of its surroundings.
  const declarations = commands.map((declare) => declare({} as Surroundings));
  for (const { words, options: declared } of [{ words: ['proxy'], options: Object.values(proxyOptions) }, ...declarations]) {
    for (const option of declared as readonly CommandOption<unknown>[]) {
      const row = [
        code(`--${option.flag}`),
        code(environmentName(option)),
        defaultOf(option),
        `${option.help} Takes ${option.acceptedValues}.`,
      ];
      const at = row.join('\n');
      rows.set(at, row);
      commandsByRow.set(at, [...(commandsByRow.get(at) ?? []), words.join(' ')]);
    }
  }
  return [...rows].map(([at, [flag = '', variable = '', defaultText = '', help = '']]) => [
    flag,
    variable,
    defaultText,
    (commandsByRow.get(at) ?? []).join(', '),
    help,
  ]);
}

function metricsPage(): string {
  return `# Metrics

\`GET /metrics\` has these, in the text format of Prometheus, and beside them the metrics of the process that prom-client collects (\`process_…\`,
\`nodejs_…\`). It answers those who may read the status, the group \`system:kcp:metrics-reader\`, and everybody with \`--authorization-always-allow-paths=/metrics\`.

${metricsOf(metricTable)}
## Metrics of a front door

A front door has these as well, with the names, labels and buckets of kcp's own, for kcp's dashboards. A method or a code that HTTP does not have is \`unknown\`.

${metricsOf(frontDoorMetricTable)}
## Metrics of an agent

\`GET /metrics\` at the \`--metrics-bind-address\` of \`strata push\` has these, and those of the process. It answers everybody.

${metricsOf(agentMetricTable)}`;
}

function metricsOf(declared: MetricTable): string {
  const rows = Object.values(declared).map(({ name, kind, labels, help }) => [code(name), kind, labels.map(code).join(', ') || '–', help]);
  return table(['name', 'kind', 'labels', 'what it says'], rows);
}

function defaultOf({ default: text }: Pick<CommandOption<unknown>, 'default'>): string {
  return text === undefined ? '–' : code(text);
}

function table(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = [header, header.map(() => '---'), ...rows.map((row) => row.map((cell) => cell.replaceAll('|', '\\|')))];
  return lines.map((cells) => `| ${cells.join(' | ')} |\n`).join('');
}

function code(text: string): string {
  return `\`${text}\``;
}
