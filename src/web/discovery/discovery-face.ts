/** Routes below `/shards/S/clusters/C` that describe the served types. Pure. */
import type { Refusal } from '../../domain/errors.js';
import { notAcceptable } from '../formats/accept.js';
import {
  apiGroup,
  apiGroups,
  apiResources,
  coreVersions,
  parseDiscoveryForm,
  versionAnswer,
  type Answer,
  type Described,
} from './discovery.js';
import { openApiDocument, openApiIndex, openApiV2, type Sources, type TaggedAnswer } from './openapi.js';
import type { Documented, SchemaTexts } from './openapi-schema.js';

export type DiscoveryAnswer = Answer & Partial<Pick<TaggedAnswer, 'etag'>>;

export type Discovered = Readonly<{ kind: 'answer'; answer: DiscoveryAnswer } | { kind: 'refused'; refusal: Refusal }>;

/** Undefined if the path does not belong to discovery; `types` is not called then. */
export function discover(
  rest: readonly string[],
  asked: Readonly<{ accept: string | undefined; version: string; types: () => readonly Documented[]; schemas: SchemaTexts }>,
): Discovered | undefined {
  const { accept, version, types: described, schemas } = asked;
  const [root, ...own] = rest;
  switch (root) {
    case 'version':
      return own.length === 0 ? found(versionAnswer(version)) : undefined;
    case 'api':
      if (own.length === 0) return aggregated(coreVersions, accept, described);
      return own.length === 1 ? found(apiResources(described(), '', own[0] ?? '')) : undefined;
    case 'apis':
      if (own.length === 0) return aggregated(apiGroups, accept, described);
      if (own.length === 1) return found(apiGroup(described(), own[0] ?? ''));
      return own.length === 2 ? found(apiResources(described(), own[0] ?? '', own[1] ?? '')) : undefined;
    case 'openapi':
      if (own[0] === 'v3') return found(openApi(own.slice(1), described, { published: schemas, release: version }));
      return own[0] === 'v2' && own.length === 1 ? negotiated(openApiV2(accept, version)) : undefined;
    default:
      return undefined;
  }
}

function found(answer: DiscoveryAnswer | undefined): Discovered | undefined {
  return answer && { kind: 'answer', answer };
}

function negotiated(answer: DiscoveryAnswer | undefined): Discovered {
  return answer === undefined ? { kind: 'refused', refusal: notAcceptable() } : { kind: 'answer', answer };
}

function aggregated(make: typeof coreVersions, accept: string | undefined, types: () => readonly Described[]): Discovered {
  const form = parseDiscoveryForm(accept);
  return negotiated(form && make(types(), form));
}

function openApi(own: readonly string[], types: () => readonly Documented[], sources: Sources): DiscoveryAnswer | undefined {
  const [root, first = '', second = '', ...more] = own;
  if (root === undefined) return openApiIndex(types(), sources);
  if (root === 'api') return openApiDocument(types(), sources, { group: '', version: first });
  return root === 'apis' && more.length === 0 ? openApiDocument(types(), sources, { group: first, version: second }) : undefined;
}
