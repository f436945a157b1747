/** The files of examples/ must be valid, consistent with each other, and used by the demo. */
import { readdir, readFile } from 'node:fs/promises';
import { test } from '../../support/test.js';
import { policiesOfChild } from '../../../src/domain/link-policies.js';
import { linkPoliciesOf } from '../../../src/config/settings.js';
import { projectFile } from '../../support/project.js';
import { dealObjects } from '../../demo/dealt-shards.js';
import { exampleCaches } from '../../demo/example-caches.js';
import { recordedObjects } from '../../demo/recorded-shards.js';
import { shapes } from '../../demo/shapes.js';

test('every folder of examples is a shape that the demo offers and the README names', async (t) => {
  const readme = await readFile(projectFile('README.md'), 'utf8');

  const folders = (await readdir(projectFile('examples'))).toSorted();

  t.deepEqual(folders, shapes.map(({ name }) => name).toSorted());
  for (const folder of folders) t.true(readme.includes(`--shape ${folder}`), folder);
});

for (const { name: shape, origins, far, holds } of shapes) {
  test(`the files of ${shape} are valid, and form one tree of the caches that the demo knows`, async (t) => {
    const caches = await exampleCaches(shape);

    t.deepEqual(caches.map(({ name }) => name).toSorted(), Object.keys(holds).toSorted());
    t.is(caches.filter(({ parent }) => parent === undefined).length, 1);
    t.is(new Set(caches.map(({ settings }) => settings.securePort)).size, caches.length);
    for (const name of [...Object.values(origins), far]) t.true(name in holds, name);
  });

  test(`each cache of ${shape} has an entry at its parent, a certificate of its name and rules for what the parent sends`, async (t) => {
    const caches = await exampleCaches(shape);

    for (const { name, settings, parent } of caches) {
      t.is(settings.rootDirectory, name);
      if (parent === undefined) continue;
      const above = caches.find((cache) => cache.name === parent);
      const policies = above === undefined ? undefined : policiesOfChild(linkPoliciesOf(above.settings), name);
      t.deepEqual([settings.parentCertFile, settings.parentKeyFile], [`cache-${name}.crt`, `cache-${name}.key`]);
      t.true(settings.parentFollow.length > 0 && policies !== undefined && policies.offer.length > 0, `nothing comes down to ${name}`);
      t.is(
        settings.parentForward.length > 0,
        policies !== undefined && policies.accept.length > 0,
        `the ends disagree on what ${name} sends`,
      );
    }
  });
}

test('every policy passes some of the objects that the demo deals out, and keeps some back', async (t) => {
  const objects = dealObjects(await recordedObjects('kcp-2-shards.jsonl'));

  t.is(new Set(objects.map(({ id }) => id)).size, objects.length);
  for (const shard of ['amber', 'birch']) t.true(objects.some((object) => object.shard === shard));
  for (const tenant of ['tenant-a', 'tenant-b']) t.true(objects.some((object) => object.tenant === tenant));
  const chain = shapes.find(({ name }) => name === 'chain');
  for (const [cache, isHeld] of Object.entries(chain?.holds ?? {})) {
    t.true(objects.some(isHeld), cache);
    t.false(objects.every(isHeld), cache);
  }
});
