/**
 * The options of a store in etcd. Options that kcp's cache server also has are spelled the same.
 */
import { bytes, count, duration, file, parsedBy, several } from './option.js';

const prefixPattern = /^(?:\/[A-Za-z0-9._-]+)+$/;
const serverPattern = /^https?:\/\/[^/\s,]+$/;

export const etcdOptions = {
  etcdServers: several({
    flag: 'etcd-servers',
    yaml: 'etcd.servers',
    placeholder: 'urls',
    acceptedValues: 'URLs of the members of one etcd without a path, such as https://localhost:2379, separated by commas',
    parse: parseServers,
    help: 'The etcd that keeps the store, which several servers may share; without it, the store is in the data directory.',
  }),
  etcdPrefix: parsedBy({
    flag: 'etcd-prefix',
    yaml: 'etcd.prefix',
    placeholder: 'path',
    acceptedValues: 'a path such as /cache, which is the default',
    parse: (text) => (text === '' ? '/cache' : prefixPattern.test(text) ? text : undefined),
    help: 'The prefix of all keys of the store in etcd.',
  }),
  etcdCaFile: file({ flag: 'etcd-cafile', yaml: 'etcd.caFile', help: 'The CAs (PEM) that sign the certificates of etcd.' }),
  etcdCertFile: file({ flag: 'etcd-certfile', yaml: 'etcd.certFile', help: 'The client certificate (PEM) to show to etcd.' }),
  etcdKeyFile: file({ flag: 'etcd-keyfile', yaml: 'etcd.keyFile', help: 'The key (PEM) of that client certificate.' }),
  etcdTimeoutMs: duration({
    flag: 'etcd-timeout',
    yaml: 'etcd.timeout',
    default: '5s',
    min: '100ms',
    max: '1m',
    help: 'How long one answer of etcd may take.',
  }),
  etcdBodiesBytesMax: bytes({
    flag: 'etcd-bodies-bytes-max',
    yaml: 'etcd.bodiesBytesMax',
    default: '256MiB',
    min: '1MiB',
    max: '1TiB',
    help: 'How many bytes of objects the server keeps in memory; it reads others from etcd.',
  }),
  etcdHistoryAgeMs: duration({
    flag: 'etcd-history-age',
    yaml: 'etcd.historyAge',
    default: '5m',
    min: '10s',
    max: '24h',
    help: 'How far back watches can resume from a store in etcd; the server compacts older revisions.',
  }),
  etcdHistoryBytesMax: bytes({
    flag: 'etcd-history-bytes-max',
    yaml: 'etcd.historyBytesMax',
    default: '256MiB',
    min: '1MiB',
    max: '1TiB',
    help: 'How many bytes of that history the server keeps in memory.',
  }),
  etcdResumedRevisionsMax: count({
    flag: 'etcd-resumed-revisions-max',
    yaml: 'etcd.resumedRevisionsMax',
    default: '20000',
    min: 0,
    max: 10_000_000,
    help: 'How many revisions back a server reads when it starts, so that watches of other servers can continue here; etcd sends some 9,000 a second.',
  }),
};

function parseServers(urls: readonly string[]): readonly string[] | undefined {
  return urls.every((url) => serverPattern.test(url) && URL.canParse(url)) ? [...new Set(urls)] : undefined;
}
