import { test } from '../../support/test.js';
import { parseKubePath, type RequestedCluster } from '../../../src/web/kube/kube-path.js';
import { parseTarget } from '../../../src/web/target.js';

function shown(path: string): string {
  const target = parseTarget(path);
  const result = target.kind === 'parsed' ? parseKubePath(target.value.segments) : target;
  if (result.kind === 'refused') return `${result.refusal.reason}: ${result.refusal.message}`;
  const { shard, cluster, rest } = result.value;
  return [shard ?? '-', cluster === undefined ? '-' : clusterText(cluster), ...rest].join(' ');
}

function clusterText(cluster: RequestedCluster): string {
  if (cluster.kind === 'all') return '*';
  return cluster.kind === 'name' ? cluster.name : `path(${cluster.path})`;
}

const urlRule = 'a URL begins with /services/cache/shards/SHARD/clusters/CLUSTER, where * stands for all of them';

for (const [path, expected] of [
  ['/shards/amber/clusters/acme/apis/g/v1/things', 'amber acme apis g v1 things'],
  ['/services/cache/shards/amber/clusters/acme/apis/g/v1/things', 'amber acme apis g v1 things'],
  ['/services/cache/shards/%2A/clusters/%2A/apis/g/v1/things', '* * apis g v1 things'],
  ['/services/cache/shards/*/clusters/*/api/v1/configmaps:hash', '* * api v1 configmaps:hash'],
  ['/shards/amber/clusters/acme/apis/g/v1/things/', 'amber acme apis g v1 things'],
  ['/shards/amber/clusters/system:admin/api', 'amber system:admin api'],
  ['/shards/amber/clusters/root:org:team/api', 'amber path(root:org:team) api'],
  ['/shards/amber/clusters/root%3Aorg/api', 'amber path(root:org) api'],
  ['/shards/amber/clusters/acme/apis/g/v1/things/a%3Fb', 'amber acme apis g v1 things a?b'],
  ['/clusters/root:org/api', '- path(root:org) api'],
  ['/services/cache/clusters/%2A/apis', '- * apis'],
  ['/shards/amber', 'amber -'],
  ['/shards/amber/version', 'amber - version'],
  ['/version', '- - version'],
  ['/', '- -'],
  ['/services/cache', '- -'],
  ['/services/other/shards/amber', '- - services other shards amber'],
  ['/shards', `BadRequest: a shard name is required: ${urlRule}`],
  ['/shards/', `BadRequest: a shard name is required: ${urlRule}`],
  ['/shards//clusters/acme', `BadRequest: a shard name is required: ${urlRule}`],
  ['/shards/AMBER/clusters/acme', 'BadRequest: invalid shard: "AMBER" does not match the regex'],
  [`/shards/${'a'.repeat(62)}/clusters/acme`, `BadRequest: invalid shard: "${'a'.repeat(62)}" does not match the regex`],
  ['/shards/a%00b/clusters/acme', 'BadRequest: invalid shard: "a\\u0000b" does not match the regex'],
  ['/shards/amber/clusters/Acme', 'BadRequest: invalid cluster: "Acme" does not match the regex'],
  ['/shards/amber/clusters/a_b', 'BadRequest: invalid cluster: "a_b" does not match the regex'],
  ['/shards/amber/clusters/-a', 'BadRequest: invalid cluster: "-a" does not match the regex'],
  ['/shards/amber/clusters/root::team', 'BadRequest: invalid cluster: "root::team" does not match the regex'],
  ['/shards/amber/clusters/system:', 'BadRequest: invalid cluster: "system:" does not match the regex'],
  ['/shards/amber/clusters//apis', 'BadRequest: invalid cluster: "" does not match the regex'],
  ['/shards/amber/clusters', 'BadRequest: invalid cluster: "" does not match the regex'],
  ['/shards/%zz/clusters/acme', 'BadRequest: invalid path: "/shards/%zz/clusters/acme"'],
  ['/shards/amber/clusters/%', 'BadRequest: invalid path: "/shards/amber/clusters/%"'],
  ['/shards/amber/clusters/%C3%28', 'BadRequest: invalid path: "/shards/amber/clusters/%C3%28"'],
  ['/shards/amber/clusters/acme/apis//v1/things', 'BadRequest: invalid path: there is nothing between two slashes'],
  ['/shards/amber/clusters/acme/apis/g/v1/things//', 'BadRequest: invalid path: there is nothing between two slashes'],
  ['/shards/amber//', 'BadRequest: invalid path: there is nothing between two slashes'],
  ['/shards/__proto__/clusters/acme', 'BadRequest: invalid shard: "__proto__" does not match the regex'],
  ['/shards/amber/clusters/constructor/apis/__proto__/v1/prototype', 'amber constructor apis __proto__ v1 prototype'],
] satisfies [string, string][]) {
  test(`the path ${path.slice(0, 80)} is: ${expected.slice(0, 80)}`, (t) => {
    t.is(shown(path), expected);
  });
}
