/**
 * Finds the tags that the docs and deploy/ give our image, and says which of them kcp-operator
 * would read as a version of kcp.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { projectFile } from './project.js';

/**
 * A version as Masterminds/semver v3 parses it: a `v` may precede it, and minor and patch may be
 * missing. It limits numbers to 64 bits; none of our tags has such a number.
 */
const version =
  /^v?\d+(?:\.\d+){0,2}(?:-(?!0\d+(?:\.|\+|$))[\dA-Za-z-]+(?:\.(?!0\d+(?:\.|\+|$))[\dA-Za-z-]+)*)?(?:\+[\dA-Za-z-]+(?:\.[\dA-Za-z-]+)*)?$/;
/** A number alone after the name of the image is a port, not a tag. */
const tagPattern = /(?:^|[\s{,])(?:tag|newTag): *["']?([\w.-]+)|\bstrata:(?!\d+\b(?![.-]))(\w[\w.-]*)(?![\w/])/g;

export function readsAsVersion(tag: string): boolean {
  return version.test(tag);
}

/** The tags in each file that has some, by the file's path. */
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
