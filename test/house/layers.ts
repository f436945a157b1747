/**
 * The arrows and fences of the house (_Rooms and arrows_ of src/ARCHITECTURE.md), as data, and the
 * check that enforces them.
 *
 * A room is a folder of src/; each file beside the rooms is a room of its own. Anything that is in
 * no table is a violation, so a new room or library must first be entered here.
 */
import { builtinModules } from 'node:module';
import { importsOf, packageOf, resolveImport } from './imports.js';
import { codeOf, lineOf } from './source-text.js';
import type { Source } from './sources.js';

/** The rooms that each room may import, besides itself. */
const arrows: Readonly<Record<string, readonly string[] | 'all'>> = {
  'main.ts': ['diagnostics', 'config', 'clock.ts', 'program.ts'],
  'program.ts': ['domain', 'config', 'commands', 'regular-file.ts', 'run-server.ts', 'version.ts'],
  'run-server.ts': ['domain', 'diagnostics', 'config', 'commands', 'version.ts', 'server.ts'],
  'server.ts': 'all',
  'describe-server.ts': 'all',
  'open-certificates.ts': 'all',
  'open-console.ts': 'all',
  'open-front-door.ts': 'all',
  'open-tokens.ts': ['domain', 'diagnostics', 'config', 'certificates', 'shard', 'tokens'],
  'open-paths.ts': ['domain', 'diagnostics', 'paths'],
  'open-endpoint.ts': 'all',
  'open-listener.ts': 'all',
  'open-rooms.ts': 'all',
  'open-tier.ts': 'all',
  'stand-aside.ts': 'all',
  'open-store.ts': ['domain', 'config', 'certificates', 'store'],
  'client.ts': ['domain', 'diagnostics', 'frames', 'lookup', 'sender', 'clock.ts', 'version.ts'],
  'clock.ts': ['domain'],
  'regular-file.ts': ['domain'],
  'version.ts': [],
  commands: [
    'domain',
    'json',
    'diagnostics',
    'config',
    'certificates',
    'frames',
    'http',
    'kube',
    'sender',
    'shard',
    'store',
    'clock.ts',
    'regular-file.ts',
    'version.ts',
    'lookup',
    'open-store.ts',
  ],
  config: ['domain', 'json', 'diagnostics', 'regular-file.ts'],
  diagnostics: ['domain'],
  certificates: ['domain', 'diagnostics', 'regular-file.ts'],
  domain: [],
  json: ['domain'],
  frames: ['domain', 'json'],
  heavy: ['domain', 'json', 'diagnostics'],
  intake: ['domain', 'json', 'diagnostics', 'frames'],
  sender: ['domain', 'diagnostics', 'frames'],
  kube: ['domain', 'json', 'diagnostics', 'sender'],
  lookup: ['domain', 'json', 'diagnostics', 'frames', 'kube'],
  shard: ['domain', 'json', 'diagnostics', 'certificates', 'frames', 'kube', 'sender', 'regular-file.ts'],
  paths: ['domain'],
  tokens: ['domain', 'diagnostics'],
  proxy: ['domain', 'diagnostics', 'http', 'kube', 'tokens'],
  store: ['domain', 'json', 'diagnostics'],
  tier: ['domain', 'diagnostics', 'frames', 'sender', 'intake'],
  watch: ['domain', 'diagnostics'],
  console: ['domain', 'diagnostics'],
  http: ['domain', 'diagnostics'],
  web: ['domain', 'json', 'diagnostics', 'console', 'http'],
};

/** The rooms that may import each library. */
const fences: Readonly<Record<string, readonly string[]>> = {
  'better-sqlite3': ['store'],
  'better-sqlite3-napi': ['store'],
  '@grpc/grpc-js': ['store'],
  '@bufbuild/protobuf': ['store'],
  koa: ['web'],
  '@koa/router': ['web'],
  fresh: ['web'],
  ws: ['frames'],
  // The types in the package's API name those of ws.
  '@types/ws': ['frames'],
  msgpackr: ['frames'],
  '@kubernetes/client-node': ['shard'],
  pino: ['diagnostics'],
  'pino-pretty': ['diagnostics'],
  'prom-client': ['diagnostics'],
  '@peculiar/x509': ['certificates'],
  asn1js: ['certificates'],
  // Needed by x509's decorators; imported for its effect, before x509.
  'reflect-metadata': ['certificates'],
  commander: ['program.ts', 'config'],
  yaml: ['json'],
  jose: ['tokens'],
  piscina: ['heavy'],
  // For the console's page, which also gets the files of both.
  'lit-html': ['console'],
  uplot: ['console'],
};

/** Rooms that only compute, and reach nothing outside. */
const pureRooms: readonly string[] = ['domain', 'json'];
/** Node's modules that only compute, and reach nothing outside. */
const pureBuiltins: readonly string[] = ['node:assert', 'node:buffer', 'node:crypto'];
const builtins = new Set(builtinModules.flatMap((name) => [name, `node:${name}`]));

export function layerViolations(sources: readonly Source[]): readonly string[] {
  return sources
    .filter(({ path }) => path.startsWith('src/'))
    .flatMap((source) => [...importViolations(source), ...processViolations(source)]);
}

export function unfencedLibraries(dependencies: readonly string[]): readonly string[] {
  return dependencies
    .filter((name) => fences[name] === undefined)
    .map((name) => `${name} lives in no room: give it a fence in test/house/layers.ts`);
}

function importViolations(source: Source): readonly string[] {
  const room = roomOf(source.path);
  const allowed = arrows[room];
  if (allowed === undefined) return [`${source.path}: the room ${room} has no arrows in test/house/layers.ts`];

  return importsOf(source.text).flatMap(({ specifier, line }) => {
    const target = resolveImport(source, specifier);
    const why = target === undefined ? libraryViolation(room, specifier) : arrowViolation(room, { target, allowed });
    return why === undefined ? [] : [`${source.path}:${line}: ${why}`];
  });
}

function arrowViolation(room: string, { target, allowed }: { target: string; allowed: readonly string[] | 'all' }): string | undefined {
  if (!target.startsWith('src/')) return `${target} is outside src`;
  const other = roomOf(target);
  if (other === room || allowed === 'all' || allowed.includes(other)) return undefined;
  return `${room} may not import ${other}`;
}

function libraryViolation(room: string, specifier: string): string | undefined {
  const name = packageOf(specifier);
  if (builtins.has(name)) return builtinViolation(room, name.startsWith('node:') ? name : `node:${name}`);
  const rooms = fences[name];
  if (rooms === undefined) return `${name} lives in no room`;
  return rooms.includes(room) ? undefined : `${name} lives in ${rooms.join(' and ')}, not in ${room}`;
}

function builtinViolation(room: string, name: string): string | undefined {
  if (name === 'node:process' && room !== 'main.ts') return 'only main.ts knows the process';
  if (pureRooms.includes(room) && !pureBuiltins.includes(name)) return `${room} is pure and may not import ${name}`;
  return undefined;
}

/**
 * A failpoint ends the process in any thread, where nobody passes the process to it. The driver of
 * SQLite depends on the version of Node. Only a tick runs after all microtasks of a task
 * (`process.nextTick`).
 */
const knowProcess: readonly string[] = ['src/main.ts', 'src/diagnostics/failpoint.ts', 'src/store/sqlite/driver.ts', 'src/http/turns.ts'];

/** Uses of `process.env` and the like; a member or a name with the same spelling does not count. */
function processViolations({ path, text }: Source): readonly string[] {
  if (knowProcess.includes(path)) return [];
  const code = codeOf(text);
  return [...code.matchAll(/(?<![.#\w$])process\s*(?:\.(?!\.)|\?\.|\[)/g)].map(
    ({ index }) => `${path}:${lineOf(code, index)}: only main.ts knows the process`,
  );
}

function roomOf(path: string): string {
  return path.split('/')[1] ?? '';
}
