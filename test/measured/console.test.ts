/**
 * The console in a real Chromium, with the link that `strata console` prints, a mouse and a
 * keyboard. Skipped with a log line where Chromium is not installed.
 */
import type { ExecutionContext } from 'ava';
import { test } from '../support/test.js';
import { chromium, type Browser } from 'playwright-core';
import { PushingShard, putBatches, sync } from '../../bench/harness/pushing-shard.js';
import { builtMain } from '../support/project.js';
import { aServer, type TestServer } from '../support/test-server.js';
import { aTree } from '../support/test-tree.js';
import { installed, runProgram } from '../clients/installed.js';

const program = 'chromium';
const awayMsMax = 2_000;
const noDelayMs = 1_000;
const manyObjects = 100_000;
const wide = { width: 1_280, height: 800 };
const narrow = { width: 360, height: 740 };

let browser: Browser | undefined;
test.before(async () => {
  if ((await installed(program, '--version')) === undefined) return;
  browser = await chromium.launch({ executablePath: `/usr/bin/${program}`, args: ['--no-sandbox'] });
});
test.after.always(async () => browser?.close());

function inBrowser(title: string, implementation: (t: ExecutionContext) => Promise<void>): void {
  test.serial(title, async (t) => {
    if (browser === undefined) {
      t.log('SKIPPED: chromium is not installed');
      t.pass();
      return;
    }
    t.timeout(180_000);
    await implementation(t);
  });
}

inBrowser('the link opens the tree, and a shard that disconnects is shown as away within two seconds', async (t) => {
  const tree = await aTree(t);
  const parent = await tree.cache('root');
  const child = await tree.cache('east', { parent });
  const shard = await PushingShard.open(pushTarget(child), 'amber');
  await shard.send(sync(putBatches('amber', 50, 0)));
  const { page, complaints } = await opened(t, parent);

  await page.getByText('every shard of the tree is known here').waitFor();
  t.regex((await page.locator('.tree').textContent())!, /connected\s+east\s+child/);
  const row = page.locator('tr[data-shard=amber]');
  await row.getByText('fresh').waitFor();
  t.regex((await row.textContent())!, /child\/east/);
  t.is(await page.locator('canvas').count(), 4);

  const goneMs = performance.now();
  await shard.close();
  await row.getByText('away').waitFor({ timeout: 10_000 });
  const turnedMs = performance.now() - goneMs;
  t.true(turnedMs <= awayMsMax, `${turnedMs} ms`);
  t.deepEqual(complaints, []);
});

inBrowser('a hundred thousand objects are browsed without delay, by shard, logical cluster and name', async (t) => {
  const server = await aServer(t);
  const shard = await PushingShard.open(pushTarget(server), 'amber');
  t.teardown(() => shard.close());
  await shard.send(sync(putBatches('amber', manyObjects, 0)));
  const { page, complaints } = await opened(t, server);

  const beganMs = performance.now();
  await page.getByRole('link', { name: 'APIExport', exact: true }).click();
  await page.getByText('200 shown, there are more').waitFor();
  const listedMs = performance.now() - beganMs;
  t.true(listedMs <= noDelayMs, `the first page came after ${listedMs} ms`);
  const moreMs = performance.now();
  await page.getByRole('button', { name: 'More' }).click();
  await page.getByText('400 shown, there are more').waitFor();
  t.true(performance.now() - moreMs <= noDelayMs);

  const name = (await page.locator('.list tbody a').nth(250).textContent())!;
  await page.getByLabel('Name').fill(name);
  await page.getByLabel('Name').press('Enter');
  await page.locator('.list tbody tr').first().waitFor();
  t.true((await page.locator('.list tbody a').allTextContents()).every((text) => text === name));
  await page.locator('.list tbody a').first().click();
  await page.getByText('kind: APIExport').waitFor();
  t.regex((await page.locator('pre').textContent())!, new RegExp(`^ {2}name: ${name}$`, 'm'));
  t.deepEqual(complaints, []);
});

inBrowser('the keyboard alone finds, opens and closes an object', async (t) => {
  const server = await aServer(t);
  await server.client().create(exports, anExport('edge'));
  const { page, complaints } = await opened(t, server, '#/objects?type=apiexports.apis.kcp.io');

  await page.getByText('1 shown').waitFor();
  await page.keyboard.press('/');
  await page.keyboard.type('edge');
  await page.keyboard.press('Enter');
  await page.waitForURL(/name=edge/);
  const link = page.locator('.list tbody a');
  while (!(await link.evaluate((element) => element === element.ownerDocument.activeElement))) await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await page.getByText('kind: APIExport').waitFor();
  await page.keyboard.press('Escape');
  await page.locator('pre').waitFor({ state: 'detached' });
  await page.goBack();
  await page.getByText('kind: APIExport').waitFor();
  t.deepEqual(complaints, []);
});

inBrowser('a search by name covers all types, and a result opens its object', async (t) => {
  const server = await aServer(t);
  const client = server.client();
  await client.create(exports, anExport('edge'));
  await client.create(exports, anExport('other'));
  const shards = '/services/cache/shards/birch/clusters/root/apis/core.kcp.io/v1alpha1/shards';
  await client.create(shards, { apiVersion: 'core.kcp.io/v1alpha1', kind: 'Shard', metadata: { name: 'edge' }, spec: {} });
  const { page, complaints } = await opened(t, server, '#/objects');

  await page.getByText('Choose a type, or give a name.').waitFor();
  await page.getByLabel('Name').fill('edge');
  await page.getByLabel('Name').press('Enter');
  await page.getByText('2 shown').waitFor();
  const rows = (await page.locator('.list tbody tr').allTextContents()).map((text) => text.trim().split(/\s+/));
  t.deepEqual(rows.toSorted(), [
    ['apiexports.apis.kcp.io', 'edge', 'amber', 'acme'],
    ['shards.core.kcp.io', 'edge', 'birch', 'root'],
  ]);
  await page.locator('.list tbody tr', { hasText: 'birch' }).getByRole('link').click();
  await page.getByText('kind: Shard').waitFor();
  await page.goBack();
  await page.getByText('2 shown').waitFor();
  t.deepEqual(complaints, []);
});

inBrowser('the console’s link and a link to an object work when they are clicked on another site', async (t) => {
  const server = await aServer(t);
  await server.client().create(exports, anExport('edge'));
  const { page, complaints } = await opened(t, server);
  await page.locator('tr[data-shard=amber]').waitFor();

  const place = `${server.url}/console#/objects?type=apiexports.apis.kcp.io&open=amber/acme//edge`;
  await page.goto(`data:text/html,<a href="${encodeURI(place).replace('#', '%23').replace('&', '%26')}">there</a>`);
  await page.getByText('there').click();
  await page.getByText('kind: APIExport').waitFor();

  const other = await page.context().browser()!.newContext({ ignoreHTTPSErrors: true });
  t.teardown(() => other.close());
  const chat = await other.newPage();
  await chat.goto(`data:text/html,<a href="${await linkTo(t, server)}">link</a>`);
  await chat.getByText('link').click();
  await chat.locator('tr[data-shard=amber]').waitFor();
  await chat.reload();
  await chat.locator('tr[data-shard=amber]').waitFor();
  // After a click on another site, the cache answers 401 with a page that leads on to the console.
  t.deepEqual(
    complaints.filter((text) => !text.includes('401')),
    [],
  );
});

inBrowser('the filters always match the list, also after going back and forward', async (t) => {
  const server = await aServer(t);
  await server.client().create(exports, anExport('edge'));
  const { page } = await opened(t, server, '#/objects?type=apiexports.apis.kcp.io');
  const type = page.locator('select[name=type]');
  await page.getByText('1 shown').waitFor();
  await type.selectOption('shards.core.kcp.io');
  await page.getByText('There is no such object.').waitFor();
  await page.goBack();
  await page.getByText('1 shown').waitFor();
  t.is(await type.inputValue(), 'apiexports.apis.kcp.io');
  await page.goForward();
  await page.getByText('There is no such object.').waitFor();
  t.is(await type.inputValue(), 'shards.core.kcp.io');

  await page.goto(`${server.url}/console#/objects?type=nonsense.example.io&shard=nowhere`);
  await page.getByText('serves no type nonsense.example.io').waitFor();
  t.is(await type.inputValue(), 'nonsense.example.io');
  t.is(await page.locator('select[name=shard]').inputValue(), 'nowhere');
});

inBrowser('no page is wider than a phone, and markup in an object is shown as text', async (t) => {
  const server = await aServer(t);
  await server.client().create(exports, { ...anExport('edge'), spec: { note: '<img src=x onerror=alert(1)>' } });
  const { page, complaints } = await opened(t, server, '#/', narrow);
  const isWithin = () => page.evaluate('document.documentElement.scrollWidth <= innerWidth');

  await page.locator('canvas').first().waitFor();
  t.true(await isWithin());
  await page.goto(`${server.url}/console#/objects?type=apiexports.apis.kcp.io&open=amber/acme//edge`);
  await page.getByText('onerror=alert(1)').waitFor();
  t.is(await page.locator('img').count(), 0);
  t.true(await isWithin());
  await server.client().create(exports.replace('acme', longCluster), anExport('far'));
  await page.goto(`${server.url}/console#/objects?type=apiexports.apis.kcp.io&open=amber/${longCluster}//far`);
  await page.locator('pre').getByText('name: far').waitFor();
  t.true(await isWithin());
  t.deepEqual(complaints, []);
});

inBrowser('when its cache stops, the console says so and keeps showing the last report', async (t) => {
  const server = await aServer(t);
  await server.client().create(exports, anExport('edge'));
  const { page } = await opened(t, server);

  await page.locator('tr[data-shard=amber]').waitFor();
  await server.stop();
  await page.getByRole('alert').getByText('the cache does not answer').waitFor();
  t.is(await page.locator('tr[data-shard=amber]').count(), 1);
});

const longCluster = `acme-${'x'.repeat(58)}`;
const exports = '/services/cache/shards/amber/clusters/acme/apis/apis.kcp.io/v1alpha2/apiexports';

function anExport(name: string) {
  return { apiVersion: 'apis.kcp.io/v1alpha2', kind: 'APIExport', metadata: { name }, spec: {} };
}

async function linkTo(t: ExecutionContext, server: TestServer): Promise<string> {
  const { certificateFile, keyFile } = server.master;
  const flags = [`--cache=${server.url}`, `--ca-file=${server.certificateFile}`, `--cert-file=${certificateFile}`, `--key-file=${keyFile}`];
  const { code, stdout, stderr } = await runProgram(builtMain(), ['console', ...flags], { timeoutMs: 30_000 });
  t.is(code, 0, stderr);
  return stdout.split('\n', 1)[0]!;
}

/**
 * Opens the console by that link. `complaints` are the messages and errors that the browser logs.
 */
async function opened(t: ExecutionContext, server: TestServer, hash = '', viewport = wide) {
  const context = await browser!.newContext({ ignoreHTTPSErrors: true, viewport });
  t.teardown(() => context.close());
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on('console', (message) => complaints.push(message.text()));
  page.on('pageerror', (error) => complaints.push(error.message));
  await page.goto(await linkTo(t, server));
  await page.waitForURL(`${server.url}/console`);
  if (hash !== '') await page.goto(`${server.url}/console${hash}`);
  return { page, complaints };
}

function pushTarget({ port, certificate: ca, master: { certificate, key } }: TestServer) {
  return { port, ca, certificate, key };
}
