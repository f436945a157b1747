/**
 * Runs `strata push` for the shard amber with a types file, in this process and fifty times faster,
 * until the test ends.
 */
import { PassThrough } from 'node:stream';
import { push } from '../../../src/commands/push.js';
import { deferred } from '../../../src/domain/base/promises.js';
import { called } from '../../support/commands/called.js';
import type { ShardStandIn } from '../../support/shard-stand-in.js';
import { hurried, type Teardown, type TestServer } from '../../support/test-server.js';

export function pushing(t: Teardown, server: TestServer, { shard, typesFile }: Readonly<{ shard: ShardStandIn; typesFile: string }>): void {
  const pair = server.authority.issue({ user: 'amber', groups: ['strata'], uris: ['strata://shard/amber'] });
  const stopped = deferred<string>();
  const ended = called(push, {
    flags: {
      kubeconfig: shard.kubeconfig,
      'shard-name': 'amber',
      cache: server.url,
      'cache-ca-file': server.certificateFile,
      'cert-file': pair.certificateFile,
      'key-file': pair.keyFile,
      'log-level': 'error',
      'types-file': typesFile,
    },
    surroundings: { untilStopped: () => stopped.promise, logStream: new PassThrough().resume(), clock: hurried(50) },
  });
  t.teardown(async () => {
    stopped.resolve('SIGTERM');
    await ended;
  });
}
