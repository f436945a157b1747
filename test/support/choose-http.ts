/** Which HTTP the tests of this file speak, where TEST_HTTP leaves it open (`ava.config.js`): TEST_HTTP is 1 or 2 from here on. */
import { createHash } from 'node:crypto';
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import test from 'ava';
import { findProjectRoot } from '../house/sources.js';

const asked = process.env['TEST_HTTP'] ?? '1';
if (asked !== '1' && asked !== '2') {
  const file = relative(findProjectRoot(), fileURLToPath(test.meta.file));
  const hash = createHash('sha256').update(`${process.env['TEST_COMMIT']} ${file}`).digest();
  const isSecond = (hash[0]! & 1) === 1;
  process.env['TEST_HTTP'] = isSecond === (asked === 'other') ? '1' : '2';
}
