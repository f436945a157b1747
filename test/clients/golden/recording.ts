/**
 * A recorded conversation: the requests, the answers, and the bytes of each watch as they arrived.
 */
import { readFile } from 'node:fs/promises';
import { projectFile } from '../../support/project.js';

/**
 * One recorded request. A watch has its chunks of bytes, each with the milliseconds since the
 * request.
 */
export type Recorded = Readonly<{
  id: number;
  t: number;
  ms: number;
  method: string;
  url: string;
  headers: Readonly<Record<string, string>>;
  body?: string;
  status: number;
  contentType?: string;
  answer?: string;
  chunks?: readonly (readonly [number, string])[];
}>;

/** The requests of a recording under test/clients/golden, in the order in which they were sent. */
export async function readRecording(name: string): Promise<readonly Recorded[]> {
  const text = await readFile(projectFile('test', 'clients', 'golden', name), 'utf8');
  return text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Recorded)
    .toSorted((a, b) => a.id - b.id);
}

/** Whether a request is a watch, also if no chunk was recorded. */
export function isWatch({ url, chunks }: Recorded): boolean {
  return chunks !== undefined || /[?&]watch=true/.test(url);
}

/** `/apis/GROUP/VERSION/RESOURCE` of a recorded URL. */
export function typeOf({ url }: Recorded): string {
  return /\/apis\/[^/]+\/[^/]+\/[^/?]+/.exec(url)?.[0] ?? url;
}

/** The URL that lists all objects of a type. */
export function wildcard(type: string): string {
  return `/services/cache/shards/*/clusters/*${type}`;
}
