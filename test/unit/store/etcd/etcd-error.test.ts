/**
 * Finds an error of etcd after which the client does not ask another member, though that member may
 * answer.
 */
import { status } from '@grpc/grpc-js';
import { test } from '../../../support/test.js';
import { etcdErrorOf, type EtcdErrorKind } from '../../../../src/store/etcd/etcd-error.js';

test('each error of etcd has the kind that decides what the engine does next', (t) => {
  const cases: [number, string, EtcdErrorKind][] = [
    [status.UNAVAILABLE, 'etcdserver: no leader', 'unknown'],
    [status.FAILED_PRECONDITION, 'etcdserver: rpc not supported for learner', 'unknown'],
    [status.FAILED_PRECONDITION, 'etcdserver: user name is empty', 'refused'],
    [status.RESOURCE_EXHAUSTED, 'etcdserver: mvcc: database space exceeded', 'full'],
    [status.RESOURCE_EXHAUSTED, 'etcdserver: too many requests', 'unknown'],
    [status.RESOURCE_EXHAUSTED, 'Received message larger than max (3 vs. 2)', 'too-large'],
    [status.OUT_OF_RANGE, 'etcdserver: mvcc: required revision has been compacted', 'compacted'],
    [status.INVALID_ARGUMENT, 'etcdserver: request is too large', 'too-large'],
    [status.PERMISSION_DENIED, 'etcdserver: permission denied', 'refused'],
  ];
  for (const [code, details, kind] of cases) t.is(etcdErrorOf('http://a:2379', { code, details }).kind, kind, details);
});
