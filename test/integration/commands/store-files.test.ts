import { join } from 'node:path';
import { test } from '../../support/test.js';
import { backup } from '../../../src/commands/store-files.js';
import { CacheError } from '../../../src/domain/errors.js';
import { storeDirectory } from '../../support/test-store.js';
import { called } from '../../support/commands/called.js';

test('a backup of a folder without a store fails with the name of the folder, and creates nothing', async (t) => {
  const folder = storeDirectory(t);
  const [directory, file] = [join(folder, 'nobody/data'), join(folder, 'x.db')];

  const error = await t.throwsAsync(called(backup, { operands: [file], flags: { 'data-directory': directory } }), {
    instanceOf: CacheError,
  });

  t.true(error.message.startsWith(`there is no store in ${directory}`), error.message);
});
