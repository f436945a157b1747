/**
 * Everything that precedes a body: the target of a request, its options, its headers. Any text is
 * parsed or refused.
 */
import { test } from '../../support/test.js';
import fc from 'fast-check';
import { pathSegmentFlaws } from '../../../src/domain/syntax/name-syntax.js';
import type { Parsed } from '../../../src/domain/parsed.js';
import { attempt } from '../../../src/domain/parsed.js';
import { acceptsGzip, acceptsPartial, negotiate } from '../../../src/web/formats/accept.js';
import { formatContinue, parseContinue } from '../../../src/web/kube/continue-token.js';
import { parseKubePath } from '../../../src/web/kube/kube-path.js';
import { parseResourcePath, verbOf } from '../../../src/web/kube/kube-request.js';
import { parseListOptions, parseWatchOptions, selectorBytes } from '../../../src/web/kube/list-options.js';
import { parseTarget } from '../../../src/web/target.js';
import { parseWriteOptions } from '../../../src/web/kube/write-options.js';
import { anyCharacter } from '../../support/any-character.js';
import { aKey, aScope } from '../../support/objects.js';
import { corpus, fuzz, mutated } from './fuzzing.js';

const limits = { selectorBytesMax: 16 * 1024 };
const sizeOf = (text: string): number => text.length;
const targets = fc.oneof(
  mutated(corpus('targets')),
  fc.webPath().map((path) => `/${path}`),
  fc.string({ unit: anyCharacter }),
);

function assertRefusedWith(result: Parsed<unknown>, ...reasons: readonly string[]): void {
  if (result.kind === 'refused' && !reasons.includes(result.refusal.reason)) throw new Error(`refused as ${result.refusal.reason}`);
}

test('any target is parsed, or refused as BadRequest or Invalid', (t) => {
  const law = (target: string): void => {
    const read = parseTarget(target);
    assertRefusedWith(read, 'BadRequest');
    if (read.kind === 'refused') return;
    const { segments, query } = read.value;
    const path = parseKubePath(segments);
    assertRefusedWith(path, 'BadRequest');
    if (path.kind === 'refused') return;
    const resource = parseResourcePath(path.value.rest);
    if (resource !== undefined) for (const method of ['GET', 'PUT', 'DELETE', '__proto__']) verbOf(method, resource, query);
    assertRefusedWith(parseListOptions(query, limits), 'BadRequest', 'Invalid');
    assertRefusedWith(parseWatchOptions(query, limits), 'BadRequest', 'Invalid');
    assertRefusedWith(
      attempt(() => parseWriteOptions(query, 'PatchOptions')),
      'Invalid',
    );
    if (!(selectorBytes(query) >= 0)) throw new Error('selectors have no length');
  };

  fuzz(t, targets, law, { sizeOf, msPer10kB: 40 });
});

test('a path segment is parsed to the text that the client encoded', (t) => {
  const segment = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 20 }).filter((text) => pathSegmentFlaws(text).length === 0);
  const law = (segments: readonly string[]): void => {
    const target = parseTarget(`/shards/amber/clusters/acme/${segments.map(encodeURIComponent).join('/')}`);
    const path = target.kind === 'parsed' ? parseKubePath(target.value.segments) : target;
    if (path.kind === 'refused' || JSON.stringify(path.value.rest) !== JSON.stringify(segments)) throw new Error(JSON.stringify(path));
  };

  fuzz(t, fc.array(segment, { minLength: 1, maxLength: 5 }), law, { sizeOf: () => 0, msPer10kB: 40 });
});

test('any Accept header is negotiated or refused as NotAcceptable', (t) => {
  const law = (header: string): void => {
    for (const asked of ['one', 'list', 'watch'] as const) {
      const answered = negotiate(header, asked);
      assertRefusedWith(answered, 'NotAcceptable');
      if (asked === 'watch' && answered.kind === 'parsed' && answered.value.encoding === 'yaml') throw new Error('a watch in YAML');
    }
    acceptsPartial(header, 'list');
    if (acceptsGzip(header) && !header.includes('gzip')) throw new Error('nobody asked for gzip');
    if (acceptsGzip(`${header},gzip`) === false) throw new Error('gzip was asked for');
  };

  fuzz(t, fc.oneof(mutated(corpus('headers')), fc.string()), law, { sizeOf, msPer10kB: 40 });
});

test('any text is parsed as a continue token or refused as BadRequest', (t) => {
  const scope = aScope();
  const law = (text: string): void => {
    const token = parseContinue(text, scope);
    assertRefusedWith(token, 'BadRequest');
    if (token.kind === 'parsed' && typeof token.value.after.name !== 'string') throw new Error('a key without a name');
  };

  fuzz(t, fc.oneof(mutated(corpus('continue-tokens')), mutated(corpus('continue-tokens').map(decoded)).map(encoded)), law, {
    sizeOf,
    msPer10kB: 20,
  });
});

test('a continue token leads back to where it was made, in its own list only', (t) => {
  const scope = aScope();
  const texts = fc.string({ unit: 'grapheme', maxLength: 30 });
  const law = ([name, namespace, revision]: readonly [string, string, number]): void => {
    const after = { ...aKey(), name, namespace };
    const made = { resourceVersion: revision === 0 ? undefined : String(revision), after };
    const token = formatContinue(made, scope);
    const read = parseContinue(token, scope);
    if (read.kind === 'refused' || JSON.stringify(read.value) !== JSON.stringify(made)) throw new Error(JSON.stringify(read));
    if (parseContinue(token, { ...scope, namespace: 'other' }).kind === 'parsed') throw new Error('it is accepted in another list');
  };

  fuzz(t, fc.tuple(texts, texts, fc.nat()), law, { sizeOf: () => 0, msPer10kB: 20 });
});

function decoded(token: string): string {
  return Buffer.from(token, 'base64url').toString();
}

function encoded(text: string): string {
  return Buffer.from(text).toString('base64url');
}
