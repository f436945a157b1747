/**
 * The shell programs between sharded-test-server and what it starts: it knows one cache server, and gives up when that ends.
 */
import { builtMain } from '../support/project.js';

/** Ports of the servers of shard 0; those of the next shards follow. */
const firstPorts = [6444, 7444] as const;

/** TEST_SERVER takes the place of our server. */
export function cacheServerScript(folder: string, variables: Readonly<Record<string, string>> = {}): string {
  const foreign = process.env['TEST_SERVER'];
  const command = foreign === undefined ? `${quote(process.execPath)} ${quote(builtMain())} cache-server` : quote(foreign);
  return supervisorScript(folder, 'cache', `env ${settings(variables)} ${command}`);
}

/** Runs shards of kcp, `shard-PORT` by name, and starts one again when it ends. */
export function shardScript(folder: string, program: string): string {
  return supervisorScript(folder, `shard-$(echo " $* " | sed 's/.* --secure-port=\\([0-9]*\\) .*/\\1/')`, quote(program));
}

/** Runs our front door in place of kcp's own, by its name and with its flags. `variables` say how it reaches its cache. */
export function frontProxyScript(folder: string, variables: Readonly<Record<string, string>>): string {
  return supervisorScript(
    folder,
    'front-proxy',
    `env ${settings(variables)} ${quote(process.execPath)} ${quote(builtMain())} kcp-front-proxy`,
  );
}

/** Starts a program again whenever it ends, as a kubelet would; ends with SIGTERM. `NAME.pid` and `NAME-supervisor.pid` say who is who. */
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
 * Replaces a program that gets one cache for all shards: each shard gets its own cache, chosen by the port it is to serve on.
 * Of a flag that is given twice the last counts.
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
