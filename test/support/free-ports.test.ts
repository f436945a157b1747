import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { test } from './test.js';

test('no port is given twice, whichever process asks, and none is one that the system assigns', async (t) => {
  const asking = fileURLToPath(new URL('./ports-holder.js', import.meta.url));
  const children = Array.from({ length: 3 }, () => fork(asking, ['200']));
  const answers = await Promise.all(children.map(async (child) => (await once(child, 'message'))[0] as readonly number[]));
  for (const child of children) child.send('end');

  const ports = answers.flat();
  t.is(ports.length, 600);
  t.is(new Set(ports).size, 600);
  t.true(ports.every((port) => port >= 10_000 && port < 32_768));
});
