/**
 * A process that opens the store in the given directory, writes once, prints a line, and stays
 * until it is killed.
 */
import { aPut } from '../../support/objects.js';
import { openTestStore, write } from '../../support/test-store.js';

const store = await openTestStore(process.argv[2]!);
await write(store, aPut({}, 'absent'));
process.stdout.write('held\n');
