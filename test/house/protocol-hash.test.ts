/**
 * The wire cannot change unnoticed: the grammar in src/frames/frame.ts and the golden bytes define what two versions of the program send
 * each other, and this is their hash. A new member at the end of a frame is a new line of the ladder and a new hash. Anything
 * else is a new protocol version, with golden bytes of its own beside those of the old.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { test } from '../support/test.js';
import { protocolVersion } from '../../src/frames/frame.js';
import { goldenFile } from '../support/frames/golden.js';
import { projectFile } from '../support/project.js';

const agreed: Readonly<Record<number, string>> = {
  1: '0f3cdb12a6f74b222174ffcac84e8c897b74aa02b9dd1ece2ded47a27896a6c7',
};

test('the grammar and the golden bytes are those of the protocol version', (t) => {
  t.is(hashOf(grammar(), readFileSync(goldenFile, 'utf8')), agreed[protocolVersion] ?? 'none');
});

test('the ladder names the protocol version last', (t) => {
  const rungs = [...grammar().matchAll(/^v(\d+): /gm)].map(([, version]) => Number(version));

  t.is(rungs.at(-1), protocolVersion);
});

test('a change of the grammar or of a byte is noticed', (t) => {
  const golden = readFileSync(goldenFile, 'utf8');

  t.not(hashOf(grammar().replace('claim', 'claims'), golden), hashOf(grammar(), golden));
  t.not(hashOf(grammar(), golden.replace(/.\n/, '0\n')), hashOf(grammar(), golden));
});

/** The comment that opens frame.ts, without its margin. */
function grammar(): string {
  const [comment = ''] = /^\/\*\*.*?\*\//s.exec(readFileSync(projectFile('src', 'frames', 'frame.ts'), 'utf8')) ?? [];
  return comment.replaceAll(/^ ?\* */gm, '');
}

function hashOf(...texts: readonly string[]): string {
  return createHash('sha256').update(texts.join('\n')).digest('hex');
}
