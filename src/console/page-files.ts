/**
 * The files of the console's page, read once: the page's own, and files of the packages lit and
 * uPlot. The page loads nothing from other hosts, and its Content-Security-Policy forbids it.
 * Browsers find the packages by an import map in the page; the policy has the hash of that map.
 */
import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';

/** `etag` includes its quotes. */
export type PageFile = Readonly<{ contentType: string; body: string; etag: string }>;

export type PageFiles = Readonly<{
  page: string;
  /** The header Content-Security-Policy. */
  policy: string;
  /** Keyed by their names below /console/assets/. */
  assets: ReadonlyMap<string, PageFile>;
}>;

/** The file of a package for each name that the page's modules import. */
const packages: Readonly<Record<string, string>> = {
  'lit-html': 'lit-html/lit-html.js',
  'lit-html/directives/repeat.js': 'lit-html/directives/repeat.js',
  uplot: 'uplot/dist/uPlot.esm.js',
};
/** Files that the packages import by relative paths, and a style sheet. */
const beside: readonly string[] = ['lit-html/directive.js', 'lit-html/directive-helpers.js', 'uplot/dist/uPlot.min.css'];
const contentTypes: Readonly<Record<string, string>> = { js: 'text/javascript; charset=utf-8', css: 'text/css; charset=utf-8' };
const own = new URL('page/', import.meta.url);

export async function readPageFiles(): Promise<PageFiles> {
  const names = (await readdir(own)).filter((name) => /\.(?:js|css)$/.test(name));
  const assets = new Map<string, PageFile>();
  for (const name of names) assets.set(name, await readPageFile(fileURLToPath(new URL(name, own))));
  for (const name of [...Object.values(packages), ...beside]) assets.set(name, await readPageFile(packageFile(name)));
  const imports = Object.fromEntries(Object.entries(packages).map(([name, file]) => [name, `/console/assets/${file}`]));
  const map = JSON.stringify({ imports });
  return { page: pageWith(map), policy: policyWith(map), assets };
}

/**
 * The path of a package's file for browsers. The package's exports would resolve to the file for
 * Node, so the path is resolved from the root folder of the package.
 */
function packageFile(path: string): string {
  const [name = ''] = path.split('/');
  const found = import.meta.resolve(name);
  const folder = `/node_modules/${name}/`;
  return fileURLToPath(new URL(path.slice(name.length + 1), found.slice(0, found.lastIndexOf(folder) + folder.length)));
}

async function readPageFile(file: string): Promise<PageFile> {
  const body = await readFile(file, 'utf8');
  const contentType = contentTypes[file.slice(file.lastIndexOf('.') + 1)]!;
  return { contentType, body, etag: `"${hashOf(body).slice(0, 27)}"` };
}

function pageWith(importMap: string): string {
  return `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <title>Strata</title>
    <link rel="icon" href="data:," />
    <link rel="stylesheet" href="/console/assets/uplot/dist/uPlot.min.css" />
    <link rel="stylesheet" href="/console/assets/console.css" />
    <script type="importmap">${importMap}</script>
    <script type="module" src="/console/assets/main.js"></script>
  </head>
  <body></body>
</html>
`;
}

function policyWith(importMap: string): string {
  return [
    "default-src 'none'",
    `script-src 'self' 'sha256-${hashOf(importMap)}'`,
    "style-src 'self'",
    "connect-src 'self'",
    'img-src data:',
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
}

function hashOf(content: string): string {
  return createHash('sha256').update(content).digest('base64');
}
