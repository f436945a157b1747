import { readFileSync } from 'node:fs';
import { test } from '../../support/test.js';
import { readFrame } from '../../../src/frames/frame-codec.js';
import { goldenBytes, goldenFile, goldenText } from '../../support/frames/golden.js';
import { plain, someFrames } from '../../support/frames/some-frames.js';

test('every kind of frame is encoded to its golden bytes', (t) => {
  const text = goldenText(someFrames);

  if (readFileSync(goldenFile, 'utf8') !== text) t.log(text);
  t.is(readFileSync(goldenFile, 'utf8'), text, 'the wire format changed: read the ladder in src/frames/frame.ts');
});

test('golden bytes are decoded to the frames they came from', (t) => {
  const frames = goldenBytes(readFileSync(goldenFile, 'utf8')).map(readFrame);

  t.deepEqual(frames.map(plain), someFrames.map(plain));
});
