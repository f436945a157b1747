/**
 * Scripts by which a shell completes the command line, built from the same declarations as the
 * grammar. After a flag that takes a value, or if nothing else fits, the shell completes file
 * names.
 */
import type { DeclaredCommand } from './command-line.js';
import { booleanPlaceholder } from '../options/option.js';

export const shells = ['bash', 'zsh', 'fish'] as const;
export type Shell = (typeof shells)[number];

export type Completed = Readonly<{ name: string; commands: readonly Pick<DeclaredCommand, 'words' | 'help' | 'options'>[] }>;

export function formatCompletion(shell: Shell, completed: Completed): string {
  if (shell === 'fish') return fishScript(completed);
  // zsh can run completions that were written for bash.
  return shell === 'zsh' ? `autoload -U +X bashcompinit && bashcompinit\n${bashScript(completed)}` : bashScript(completed);
}

function bashScript({ name, commands }: Completed): string {
  const choices = new Map<string, string[]>([['', []]]);
  const add = (path: string, choice: string): void => {
    const known = choices.get(path);
    if (known === undefined) choices.set(path, [choice]);
    else if (!known.includes(choice)) known.push(choice);
  };
  for (const { words, options } of commands) {
    const [first, second] = words;
    add('', first);
    if (second !== undefined) add(first, second);
    for (const { flag } of options) add(words.join(' '), `--${flag}`);
  }
  const bare = commands.flatMap(({ options }) =>
    options.filter(({ placeholder }) => placeholder === booleanPlaceholder).map(({ flag }) => `--${flag}`),
  );
  // Operands may follow the words of a command, so the pattern matches longer paths too.
  const cases = [...choices].map(([path, words]) => `    ${path === '' ? '""' : `"${path}"*`}) choices="${words.join(' ')}" ;;`);
  // Longer paths come first, because the pattern of "shards" also matches "shards list".
  return `_${name}() {
  local word="\${COMP_WORDS[COMP_CWORD]}" before="\${COMP_WORDS[COMP_CWORD-1]}" path="" choices="" i
  COMPREPLY=()
  case "$before" in
    ${[...new Set(bare)].join('|') || '--'}) ;;
    --*) return ;;
  esac
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "\${COMP_WORDS[i]}" in
      -*) break ;;
      *) path="\${path:+$path }\${COMP_WORDS[i]}" ;;
    esac
  done
  case "$path" in
${cases.toSorted((a, b) => b.indexOf(')') - a.indexOf(')')).join('\n')}
  esac
  COMPREPLY=($(compgen -W "$choices" -- "$word"))
}
complete -o default -F _${name} ${name}
`;
}

function fishScript({ name, commands }: Completed): string {
  const firsts = [...new Set(commands.map(({ words: [first] }) => first))];
  const lines = firsts.flatMap((first) => {
    const group = commands.filter(({ words }) => words[0] === first);
    const isGroup = group.some(({ words }) => words.length === 2);
    const all = group.map(({ words }) => words[1] ?? '').join(' ');
    const ownHelp = isGroup ? all : (group[0]?.help ?? '');
    const atGroup = `__fish_seen_subcommand_from ${first}; and not __fish_seen_subcommand_from ${all}`;
    return [
      `complete -c ${name} -f -n __fish_use_subcommand -a ${first} -d ${quoted(ownHelp)}`,
      ...group.flatMap(({ words: [, second], help, options }) => {
        const at = `__fish_seen_subcommand_from ${first}${second === undefined ? '' : `; and __fish_seen_subcommand_from ${second}`}`;
        return [
          ...(second === undefined ? [] : [`complete -c ${name} -f -n ${quoted(atGroup)} -a ${second} -d ${quoted(help)}`]),
          ...options.map(
            ({ flag, placeholder, help: what }) =>
              `complete -c ${name} -n ${quoted(at)} -l ${flag}${placeholder === booleanPlaceholder ? '' : ' -r'} -d ${quoted(what)}`,
          ),
        ];
      }),
    ];
  });
  return `${lines.join('\n')}\n`;
}

function quoted(text: string): string {
  return `'${text.replaceAll(/[\\']/g, (character) => `\\${character}`)}'`;
}
