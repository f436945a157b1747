/** Compares one server on its data directory with its model. */
import { cp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { StrataProcess } from '../../support/strata-process.js';
import { compareWithModel } from './compared-with-model.js';
import type { ModelledStore } from './modelled-server.js';

compareWithModel({
  what: 'a server',
  runs: 4,
  flags: ['--history-changes-max=50', '--tombstones-max=1000', '--recent-bytes-max=64KiB'],
  open: async (_, { flags, environment }) => {
    const server = await StrataProcess.start({ flags, environment });
    return { servers: [server], store: folderOf(server), [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() };
  },
});

function folderOf({ folder, dataFolder }: StrataProcess): ModelledStore {
  let copies = 0;
  return {
    copy: async () => {
      copies += 1;
      const name = join(folder, `copy-${copies}`);
      await cp(dataFolder, name, { recursive: true });
      return name;
    },
    putBack: async (name) => {
      await rm(dataFolder, { recursive: true });
      await cp(name, dataFolder, { recursive: true });
    },
    forgets: false,
  };
}
