/**
 * Finds a change of the wire that nobody declared. The hash covers the frames and the ladder of
 * src/frames/frame.ts, and the golden bytes: they define what two versions of the program send each
 * other.
 *
 * A new member at the end of a frame needs a new line of the ladder and a new hash. Anything else
 * needs a new protocol version, with golden bytes of its own beside the old ones.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { test } from '../support/test.js';
import { frames, protocolVersion } from '../../src/frames/frame.js';
import { goldenFile } from '../support/frames/golden.js';
import { projectFile } from '../support/project.js';

const agreed: Readonly<Record<number, string>> = {
  1: '1993a5fc1366391f4392fe0825c676fc8fa5ca901176a49d4334d9f934af09b9',
};

test('the grammar and the golden bytes are those of the protocol version', (t) => {
  t.is(hashOf(grammar(), readFileSync(goldenFile, 'utf8')), agreed[protocolVersion] ?? 'none');
});

test('the last entry of the ladder is the protocol version', (t) => {
  const rungs = [...grammar().matchAll(/^v(\d+): /gm)].map(([, version]) => Number(version));

  t.is(rungs.at(-1), protocolVersion);
});

test('a change of the grammar or of a byte is noticed', (t) => {
  const golden = readFileSync(goldenFile, 'utf8');

  t.not(hashOf(grammar().replace('claim', 'claims'), golden), hashOf(grammar(), golden));
  t.not(hashOf(grammar(), golden.replace(/.\n/, '0\n')), hashOf(grammar(), golden));
});

/**
 * The ladder in the comment that opens frame.ts, and a line for each kind of frame: its number and
 * its members in order, with later additions marked.
 */
function grammar(): string {
  const [comment = ''] = /^\/\*\*.*?\*\//s.exec(readFileSync(projectFile('src', 'frames', 'frame.ts'), 'utf8')) ?? [];
  const [ladder = ''] = /^v1: .*/ms.exec(comment.replaceAll(/^ ?\* */gm, '')) ?? [];
  const kinds = Object.entries(frames).map(([kind, { number, fields }]) => {
    const members = Object.entries(fields).map(([name, field]) => ('isLate' in field ? `${name}?` : name));
    return `[${[number, ...members].join(', ')}] ${kind}`;
  });
  return `${ladder}\n${kinds.join('\n')}`;
}

function hashOf(...texts: readonly string[]): string {
  return createHash('sha256').update(texts.join('\n')).digest('hex');
}
