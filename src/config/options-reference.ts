/** The options as a page of Markdown, made from their declarations, so that it cannot differ from them. */
import { environmentName, type Option } from './option.js';
import { configFileOption, options } from './options.js';

export function renderOptionsReference(): string {
  const rows = Object.values<Option<unknown>>(options).map((option) =>
    row(
      [`--${option.flag}`, environmentName(option), option.yaml].map(code),
      option.default === undefined ? '–' : code(option.default),
      `${option.help} Takes ${option.accepts}.`,
    ),
  );
  const config = row([code(`--${configFileOption.flag}`), code(environmentName(configFileOption)), '–'], '–', configFileOption.help);
  return ['| flag | environment | file | default | what it does |', '|---|---|---|---|---|', config, ...rows, ''].join('\n');
}

function row(names: readonly string[], defaultText: string, help: string): string {
  return `| ${[...names, defaultText, help.replaceAll('|', '\\|')].join(' | ')} |`;
}

function code(text: string): string {
  return `\`${text}\``;
}
