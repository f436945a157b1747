/** Tests how the live tests count relists, because those run only where kcp's binaries are. */
import { test } from '../support/test.js';
import { countListings, countRelists } from './relists.js';

const line = (message: string): string =>
  `I1121 01:00:00.000000       1 reflector.go:456] "${message}" type="*v1.ClusterRole" reflector="informers"`;

test('a reflector that lists again counts as a relist, its first listing does not', (t) => {
  const log = [line('Starting reflector'), line('Listing and watching'), line('Caches populated'), line('Listing and watching')].join('\n');

  t.is(countRelists(log), 1);
  t.is(countListings(log), 2);
});
