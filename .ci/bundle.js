/**
 * Bundles the program with its libraries into build/bundle, and prints the path of the bundle's
 * main.js, for TEST_MAIN. The slow tests start some five hundred servers, and a bundle starts in
 * half the processor time. Every other step of `.ci/run` runs the files that ship.
 *
 * The program finds its workers, page, migrations and version beside its own files. So in the
 * bundle, `import.meta.url` stays the address of the file in build/src.
 */
import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build } from 'esbuild';

const from = fileURLToPath(new URL('../build/src', import.meta.url));
const main = resolve(from, '../bundle/main.js');

const ownAddresses = {
  name: 'own addresses',
  setup: ({ onLoad }) =>
    onLoad({ filter: /\.js$/ }, ({ path }) => {
      if (!path.startsWith(from)) return undefined;
      return { contents: readFileSync(path, 'utf8').replaceAll('import.meta.url', JSON.stringify(pathToFileURL(path).href)), loader: 'js' };
    }),
};

await build({
  entryPoints: [join(from, 'main.js')],
  outdir: dirname(main),
  bundle: true,
  // What the program imports later stays in files of its own.
  splitting: true,
  minify: true,
  legalComments: 'none',
  platform: 'node',
  format: 'esm',
  target: 'node20',
  // SQLite is native, and piscina starts a thread from a file beside its own.
  external: ['better-sqlite3', 'better-sqlite3-napi', 'piscina'],
  // CommonJS libraries call `require` for Node's own modules.
  banner: { js: `import { createRequire as requireFrom } from 'node:module'; const require = requireFrom(import.meta.url);` },
  plugins: [ownAddresses],
  logLevel: 'warning',
});

// The launcher: `build.js` has its reason.
const launcher = readFileSync(join(from, 'main.js'), 'utf8').split('\n', 2);
const bundled = readFileSync(main, 'utf8').replace(/^#!.*\n/, '');
writeFileSync(main, `${launcher.join('\n')}\n${bundled}`);
chmodSync(main, 0o755);
process.stdout.write(`${main}\n`);
