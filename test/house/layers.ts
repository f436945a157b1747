/**
 * What each module of src/ may import (_Modules_ of src/ARCHITECTURE.md), and the check that
 * enforces it.
 *
 * A module is a folder of src/, or a file directly in it. A module or a library that is in no table
 * is a violation, so enter a new one here first. A folder or a file of a module may import what its
 * module may, unless it has a list of its own. That list also names what it may import of its
 * module.
 */
import { builtinModules } from 'node:module';
import { importsOf, packageOf, resolveImport } from './imports.js';
import { codeOf, lineOf } from './source-text.js';
import type { Source } from './sources.js';

/**
 * The modules that each module may import, besides itself. An entry may also name a folder or a
 * file of a module, or, as `store/*`, the files of a module that are in none of its folders.
 */
const moduleImports: Readonly<Record<string, readonly string[] | 'all'>> = {
  'main.ts': ['diagnostics', 'config', 'clock.ts', 'program.ts'],
  'program.ts': ['domain', 'config', 'commands', 'regular-file.ts', 'server/run-server.ts', 'version.ts'],
  'client.ts': ['domain', 'diagnostics', 'frames', 'lookup', 'sender', 'clock.ts', 'version.ts'],
  'clock.ts': ['domain'],
  'regular-file.ts': ['domain'],
  'version.ts': [],
  server: 'all',
  'server/run-server.ts': ['domain', 'diagnostics', 'config', 'commands', 'version.ts', 'server/server.ts'],
  'server/open-tokens.ts': ['domain', 'diagnostics', 'config', 'certificates', 'shard/kubeconfig', 'tokens'],
  'server/open-paths.ts': ['domain', 'diagnostics', 'paths'],
  'server/open-store.ts': ['domain', 'config', 'certificates', 'store'],
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
    'server/open-store.ts',
  ],
  config: ['domain', 'json', 'diagnostics', 'regular-file.ts'],
  'config/options': ['domain', 'diagnostics'],
  'config/command-line': ['diagnostics', 'config/*', 'config/options'],
  'config/kcp-flags': ['domain', 'config/command-line', 'config/options'],
  diagnostics: ['domain'],
  certificates: ['domain', 'diagnostics', 'regular-file.ts'],
  domain: [],
  'domain/base': ['domain/errors.ts', 'domain/ports.ts'],
  'domain/slices': ['domain/*'],
  'domain/syntax': ['domain/errors.ts', 'domain/parsed.ts'],
  json: ['domain'],
  frames: ['domain', 'json'],
  heavy: ['domain', 'json', 'diagnostics'],
  intake: ['domain', 'json', 'diagnostics', 'frames'],
  'intake/admit': ['domain', 'json', 'frames'],
  'intake/writes': ['domain', 'json', 'diagnostics', 'intake/admit', 'intake/push'],
  'intake/push': ['domain', 'json', 'diagnostics', 'frames', 'intake'],
  'intake/shards': ['domain', 'json', 'diagnostics', 'frames', 'intake/push', 'intake/writes'],
  sender: ['domain', 'diagnostics', 'frames'],
  kube: ['domain', 'json', 'diagnostics', 'sender'],
  lookup: ['domain', 'json', 'diagnostics', 'frames', 'kube'],
  shard: ['domain', 'json', 'diagnostics', 'frames', 'kube', 'sender'],
  'shard/kubeconfig': ['domain', 'json', 'diagnostics', 'certificates', 'kube', 'regular-file.ts'],
  paths: ['domain'],
  tokens: ['domain', 'diagnostics'],
  proxy: ['domain', 'diagnostics', 'http', 'kube', 'tokens'],
  store: ['domain', 'json', 'diagnostics'],
  'store/etcd': ['domain', 'json', 'diagnostics', 'store/*'],
  'store/sqlite': ['domain', 'json', 'diagnostics', 'store/*'],
  tree: ['domain', 'diagnostics', 'frames', 'sender', 'intake'],
  'tree/filters': ['domain'],
  'tree/syncs': ['domain', 'frames', 'sender', 'tree/filters', 'tree/links'],
  watch: ['domain', 'diagnostics'],
  console: ['domain', 'diagnostics'],
  http: ['domain', 'diagnostics'],
  web: ['domain', 'json', 'diagnostics', 'console', 'http'],
  'web/discovery': ['domain', 'json', 'web/formats', 'web/kube'],
  'web/formats': ['domain', 'json', 'http', 'web/kube/call.ts'],
  'web/kube': ['domain', 'json', 'http', 'web'],
  'web/reviews': ['domain', 'json', 'http', 'web/authorize.ts', 'web/discovery', 'web/formats', 'web/kube'],
  'web/views': ['domain', 'json', 'web/discovery', 'web/kube'],
};

/** The modules that may import each library. */
const libraryImporters: Readonly<Record<string, readonly string[]>> = {
  'better-sqlite3': ['store/sqlite'],
  'better-sqlite3-napi': ['store/sqlite'],
  '@grpc/grpc-js': ['store/etcd'],
  '@bufbuild/protobuf': ['store/etcd'],
  koa: ['web'],
  '@koa/router': ['web'],
  fresh: ['web'],
  ws: ['frames'],
  // The types in the package's API name those of ws.
  '@types/ws': ['frames'],
  msgpackr: ['frames'],
  '@kubernetes/client-node': ['shard/kubeconfig'],
  pino: ['diagnostics'],
  'pino-pretty': ['diagnostics'],
  'prom-client': ['diagnostics'],
  '@peculiar/x509': ['certificates'],
  asn1js: ['certificates'],
  // Needed by x509's decorators; imported for its effect, before x509.
  'reflect-metadata': ['certificates'],
  commander: ['program.ts', 'config/command-line'],
  yaml: ['json'],
  jose: ['tokens'],
  piscina: ['heavy'],
  // For the console's page, which also gets the files of both.
  'lit-html': ['console'],
  uplot: ['console'],
};

/** Modules that only compute, and reach nothing outside. */
const pureModules: readonly string[] = ['domain', 'json'];
/** Node's modules that only compute, and reach nothing outside. */
const pureBuiltins: readonly string[] = ['node:assert', 'node:buffer', 'node:crypto'];
const builtins = new Set(builtinModules.flatMap((name) => [name, `node:${name}`]));

export function layerViolations(sources: readonly Source[]): readonly string[] {
  return sources
    .filter(({ path }) => path.startsWith('src/'))
    .flatMap((source) => [...importViolations(source), ...processViolations(source)]);
}

export function unknownLibraries(dependencies: readonly string[]): readonly string[] {
  return dependencies
    .filter((name) => libraryImporters[name] === undefined)
    .map((name) => `${name} may be imported by no module: test/house/layers.ts must name one`);
}

/** The modules, and parts of modules, that have a list but do not exist. */
export function missingModules(sources: readonly Source[]): readonly string[] {
  return Object.keys(moduleImports)
    .filter((place) => !sources.some(({ path }) => isWithin(path, place)))
    .map((place) => `there is no ${place}: test/house/layers.ts lists its imports`);
}

function importViolations(source: Source): readonly string[] {
  const part = partOf(source.path);
  const allowed = moduleImports[part];
  if (allowed === undefined) return [`${source.path}: the module ${moduleOf(source.path)} has no list in test/house/layers.ts`];

  return importsOf(source.text).flatMap(({ specifier, line }) => {
    const target = resolveImport(source, specifier);
    const why = target === undefined ? libraryViolation(source.path, specifier) : moduleViolation(part, { target, allowed });
    return why === undefined ? [] : [`${source.path}:${line}: ${why}`];
  });
}

function moduleViolation(part: string, { target, allowed }: { target: string; allowed: readonly string[] | 'all' }): string | undefined {
  if (!target.startsWith('src/')) return `${target} is outside src`;
  if (isWithin(target, part) || allowed === 'all' || allowed.some((place) => isWithin(target, place))) return undefined;
  const module = moduleOf(target);
  return `${part} may not import ${part.startsWith(`${module}/`) ? partOf(target) : module}`;
}

function libraryViolation(path: string, specifier: string): string | undefined {
  const name = packageOf(specifier);
  const module = moduleOf(path);
  if (builtins.has(name)) return builtinViolation(module, name.startsWith('node:') ? name : `node:${name}`);
  const places = libraryImporters[name];
  if (places === undefined) return `${name} may be imported by no module`;
  return places.some((place) => isWithin(path, place)) ? undefined : `only ${places.join(' and ')} may import ${name}, not ${partOf(path)}`;
}

function builtinViolation(module: string, name: string): string | undefined {
  if (name === 'node:process' && module !== 'main.ts') return 'only main.ts knows the process';
  if (pureModules.includes(module) && !pureBuiltins.includes(name)) return `${module} is pure and may not import ${name}`;
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

function moduleOf(path: string): string {
  return path.split('/')[1] ?? '';
}

/** The smallest part of a module that has a list and contains the file. */
function partOf(path: string): string {
  const names = path.split('/').slice(1);
  const parts = names.map((_, i) => names.slice(0, names.length - i).join('/'));
  return parts.find((part) => moduleImports[part] !== undefined) ?? moduleOf(path);
}

/** `place`: a module, a folder or a file of it, or `module/*`. */
function isWithin(path: string, place: string): boolean {
  if (place.endsWith('/*')) return path.slice(0, path.lastIndexOf('/')) === `src/${place.slice(0, -2)}`;
  return path === `src/${place}` || path.startsWith(`src/${place}/`);
}
