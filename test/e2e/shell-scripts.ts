/**
 * The shell scripts between sharded-test-server and the programs it starts: it supports only one
 * cache server, and gives up when that ends.
 */
import { builtMain } from '../support/project.js';

/** Ports of shard 0; the next shards use the ports that follow. */
const firstPorts = [6444, 7444] as const;

/** TEST_SERVER names a program that runs in place of Strata. */
export function cacheServerScript(folder: string, variables: Readonly<Record<string, string>> = {}): string {
  const foreign = process.env['TEST_SERVER'];
  const command = foreign === undefined ? `${quote(process.execPath)} ${quote(builtMain())} cache-server` : quote(foreign);
  return supervisorScript(folder, 'cache', `env ${settings(variables)} ${command}`);
}

/** Runs kcp shards under the name `shard-PORT`, and starts a shard again when it ends. */
export function shardScript(folder: string, program: string): string {
  return supervisorScript(folder, `shard-$(echo " $* " | sed 's/.* --secure-port=\\([0-9]*\\) .*/\\1/')`, quote(program));
}

/**
 * Runs Strata's front door under the name and with the flags of kcp's own. `variables` say how it
 * reaches its cache.
 */
export function frontProxyScript(folder: string, variables: Readonly<Record<string, string>>): string {
  return supervisorScript(
    folder,
    'front-proxy',
    `env ${settings(variables)} ${quote(process.execPath)} ${quote(builtMain())} kcp-front-proxy`,
  );
}

/**
 * Starts a program again whenever it ends, as a kubelet would, until the script gets SIGTERM.
 * `NAME.pid` and `NAME-supervisor.pid` hold the two pids.
 */
function supervisorScript(folder: string, name: string, command: string): string {
  return `#!/bin/sh
name=${quote(`${folder}/`)}"${name}"
echo $$ > "$name-supervisor.pid"
trap 'kill -TERM $child; wait $child; exit 0' TERM INT
while :; do
  ${command} "$@" &
  child=$!
  echo $child > "$name.pid.new"
  mv "$name.pid.new" "$name.pid"
  wait $child
  sleep 0.2
done
`;
}

/**
 * Gives each shard its own cache, chosen by the port that the shard serves on, although
 * sharded-test-server passes one cache to all. If a flag is given twice, kcp uses the last.
 */
export function choosingScript(program: string, cacheKubeconfigs: readonly string[]): string {
  const cases = cacheKubeconfigs.map((file, shard) => {
    const patterns = firstPorts.map((port) => `*" --secure-port=${port + shard} "*`);
    return `  ${patterns.join(' | ')}) exec ${quote(program)} "$@" ${quote(`--cache-kubeconfig=${file}`)} ;;\n`;
  });
  return `#!/bin/sh\ncase " $* " in\n${cases.join('')}esac\nexec ${quote(program)} "$@"\n`;
}

function settings(variables: Readonly<Record<string, string>>): string {
  return Object.entries(variables)
    .map(([name, value]) => quote(`${name}=${value}`))
    .join(' ');
}

function quote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
