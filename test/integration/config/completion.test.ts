import { execFileSync } from 'node:child_process';
import { test } from '../../support/test.js';
import type { Surroundings } from '../../../src/commands/command.js';
import { commands } from '../../../src/commands/commands.js';
import { formatCompletion } from '../../../src/config/command-line/completion.js';

// The declarations of commands use nothing of their surroundings.
const completed = { name: 'strata', commands: commands.map((command) => command({} as Surroundings)) };

test('bash completes commands, the second word and flags, and nothing after a flag that takes a value', (t) => {
  const top = inBash('st');
  t.deepEqual(top, ['status']);
  t.true(inBash('').includes('shards'));
  t.deepEqual(inBash('shards', ''), ['list', 'remove']);
  t.deepEqual(inBash('shards', 're'), ['remove']);
  t.deepEqual(inBash('status', '--wa'), ['--watch']);
  t.deepEqual(inBash('status', '--watch', '--cache-k'), ['--cache-kubeconfig']);
  t.deepEqual(inBash('status', '--cache-kubeconfig', ''), []);
  t.true(inBash('shards', 'remove', 'amber', '--').includes('--timeout'));
  t.false(inBash('shards', 'remove', 'amber', '--').includes('--watch'));
  t.deepEqual(inBash('nonsense', ''), []);
});

test('the zsh completion runs the bash completion', (t) => {
  t.regex(formatCompletion('zsh', completed), /^autoload -U \+X bashcompinit && bashcompinit\n_strata\(\) \{/);
});

test('fish has a line for each command and each of its flags, with balanced quotes', (t) => {
  const lines = formatCompletion('fish', completed).trim().split('\n');

  t.true(lines.some((line) => line.startsWith("complete -c strata -f -n __fish_use_subcommand -a status -d '")));
  t.true(
    lines.some((line) =>
      line.includes("-n '__fish_seen_subcommand_from shards; and __fish_seen_subcommand_from remove' -l timeout -r -d '"),
    ),
  );
  t.true(lines.every((line) => (line.replaceAll(/\\./g, '').match(/'/g)?.length ?? 0) % 2 === 0));
});

/**
 * What bash offers for the last word. Node gives it a socket as input, so bash would believe that
 * it runs in a remote shell and read ~/.bashrc.
 */
function inBash(...words: readonly string[]): readonly string[] {
  const script = `${formatCompletion('bash', completed)}
COMP_WORDS=(strata "$@")
COMP_CWORD=$#
_strata
printf '%s\\n' "\${COMPREPLY[@]}"`;
  const out = execFileSync('bash', ['--norc', '-c', script, 'bash', ...words], { encoding: 'utf8' });
  return out.split('\n').filter((line) => line !== '');
}
