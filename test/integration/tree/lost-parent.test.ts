import { test } from '../../support/test.js';
import type { StatusReport } from '../../../src/domain/status.js';
import { TcpProxy } from '../../support/tcp-proxy.js';
import { until } from '../../support/test-server.js';
import { aTree } from '../../support/test-tree.js';

const children = 10;
const windowMs = 200;
/**
 * Each child reconnects at a random time within a second. All ten fall into one window only once in
 * a hundred thousand runs.
 */
const inWindowMax = children - 1;

test('children that lose their parent together do not reconnect together', async (t) => {
  const tree = await aTree(t);
  const root = await tree.cache('root');
  const proxy = await TcpProxy.start(root.port);
  t.teardown(() => proxy.close());
  for (let i = 0; i < children; i += 1) await tree.cache(`child-${i}`, { parent: root, urls: [`https://127.0.0.1:${proxy.port}`] });
  const connected = async (): Promise<number> => {
    const { tree: report } = JSON.parse((await root.client().raw('GET', '/services/cache/status')).text) as StatusReport;
    return report?.children.filter(({ connection }) => connection.kind === 'connected').length ?? 0;
  };
  await until(async () => (await connected()) === children);

  const cameMs: number[] = [];
  proxy.refuse(() => {
    cameMs.push(performance.now());
    return false;
  });
  proxy.cut();
  await until(() => cameMs.length >= children);

  const most = Math.max(...cameMs.map((from) => cameMs.filter((at) => at >= from && at <= from + windowMs).length));
  const tookMs = Math.round((cameMs.at(-1) ?? 0) - (cameMs[0] ?? 0));
  t.log(`${most} of ${children} came within ${windowMs} ms, all within ${tookMs} ms`);
  t.true(most <= inWindowMax, `${most}`);
});
