/** The tags by which the docs and deploy/ name our image, and which of them kcp-operator would take for a version of kcp. */
import { readdirSync, readFileSync } from 'node:fs';
import { projectFile } from './project.js';

/** As Masterminds/semver v3 does: numbers that may be left out from behind, and a `v` before them. The numbers have 64 bits, which no tag of ours comes near. */
const version =
  /^v?\d+(?:\.\d+){0,2}(?:-(?!0\d+(?:\.|\+|$))[\dA-Za-z-]+(?:\.(?!0\d+(?:\.|\+|$))[\dA-Za-z-]+)*)?(?:\+[\dA-Za-z-]+(?:\.[\dA-Za-z-]+)*)?$/;
/** Behind the name of the image, a number alone is a port. */
const tagPattern = /(?:^|[\s{,])(?:tag|newTag): *["']?([\w.-]+)|\bstrata:(?!\d+\b(?![.-]))(\w[\w.-]*)(?![\w/])/g;

export function readsAsVersion(tag: string): boolean {
  return version.test(tag);
}

/** By the file that names them. */
export function documentedTags(): ReadonlyMap<string, readonly string[]> {
  const deploy = readdirSync(projectFile('deploy'), { recursive: true, withFileTypes: true });
  const files = [
    'README.md',
    ...readdirSync(projectFile('docs')).flatMap((name) => (name.endsWith('.md') ? [`docs/${name}`] : [])),
    ...deploy.filter((entry) => entry.isFile()).map(({ parentPath, name }) => `${parentPath.slice(projectFile().length + 1)}/${name}`),
  ];
  const named = files.map((file) => [file, tagsIn(readFileSync(projectFile(file), 'utf8'))] as const);
  return new Map(named.filter(([, tags]) => tags.length > 0));
}

export function tagsIn(text: string): readonly string[] {
  return [...text.matchAll(tagPattern)].map(([, tag, behindName]) => (tag ?? behindName)!);
}
