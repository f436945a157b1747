/** The counting of the live test, which runs where kcp's binaries are; this runs everywhere. */
import test from 'ava';
import { countInformerRequests, countRelists } from './request-count.js';

const everywhere = '/services/cache/shards/%2A/clusters/%2A/apis/apis.kcp.io/v1alpha2/apiexports';

test('lists, watches and watch-lists of informers are told apart, in both formats; everything else does not count', (t) => {
  const log = [
    JSON.stringify({ level: 'debug', event: 'request.received', verb: 'list', path: everywhere }),
    JSON.stringify({ level: 'debug', event: 'request.received', verb: 'watch', path: `${everywhere}?watch=true&resourceVersion=5` }),
    `I1121 01:00:00.000000       1 httplog.go:93] "HTTP" verb="WATCH" URI="${everywhere}?sendInitialEvents=true&watch=true" latency="5m"`,
    `I1121 01:00:00.000000       1 httplog.go:93] "HTTP" verb="GET" URI="/services/cache/shards/root/clusters/root/apis/apis.kcp.io/v1alpha2/apiexports/one" latency="5ms"`,
    JSON.stringify({
      level: 'debug',
      event: 'request.received',
      verb: 'list',
      path: `${everywhere.replace('apiexports', 'instances:abc')}`,
    }),
    JSON.stringify({ level: 'info', event: 'server.started' }),
    'not a request',
  ].join('\n');

  t.deepEqual(countInformerRequests(log), { lists: 1, watches: 1, watchLists: 1 });
});

test('a reflector that lists again is counted, one that has just started is not', (t) => {
  const log = [
    'I1121 01:00:00.000000       1 reflector.go:409] "Starting reflector" type="*v1.ClusterRole" resyncPeriod="0s" reflector="informers"',
    'I1121 01:00:00.000000       1 reflector.go:456] "Listing and watching" type="*v1.ClusterRole" reflector="informers"',
    'I1121 01:00:01.000000       1 reflector.go:456] "Listing and watching" type="*v1.ClusterRole" reflector="informers"',
  ].join('\n');

  t.is(countRelists(log), 1);
});
