/** The thread in which a `Bystander` sends its requests. */
import { setTimeout as sleep } from 'node:timers/promises';
import { parentPort, workerData } from 'node:worker_threads';
import type { BystanderData, BystanderReport } from './bystander.js';
import { KubeClient, type Answer } from './kube-client.js';

const { url, certificate, key, path, intervalMs, writes } = workerData as BystanderData;
const warmUpRequests = 50;
/** A slower answer is recorded as this long. */
const answerMsMax = 10_000;

const client = new KubeClient({ url, certificate, key, http2: true });
let delaysMs: number[] = [];
let failures: string[] = [];
let askedMs: number | undefined;
let written = 0;

async function ask(): Promise<void> {
  const startedMs = performance.now();
  askedMs = startedMs;
  const failure = await (writes ? write() : client.raw('GET', path, { timeoutMs: answerMsMax })).then(
    ({ status }) => (status === 200 ? undefined : `status ${status}`),
    (error: unknown) => String(error),
  );
  askedMs = undefined;
  delaysMs.push(performance.now() - startedMs);
  if (failure !== undefined) failures.push(failure);
}

function write(): Promise<Answer> {
  const body = { metadata: { labels: { written: String((written += 1)) } } };
  return client.raw('PATCH', path, { headers: { 'content-type': 'application/merge-patch+json' }, body, timeoutMs: answerMsMax });
}

for (let i = 0; i < warmUpRequests; i += 1) await ask();
delaysMs = [];
failures = [];
parentPort?.on('message', () => {
  // A request without an answer so far has taken at least this long.
  const waiting = askedMs === undefined ? [] : [performance.now() - askedMs];
  const report: BystanderReport = { delaysMs: [...delaysMs, ...waiting], failures };
  delaysMs = [];
  failures = [];
  parentPort?.postMessage(report);
});
parentPort?.postMessage('began');
for (;;) {
  await ask();
  await sleep(intervalMs);
}
