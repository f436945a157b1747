/** The jobs that write. Every writer sends its next request when the last one is answered; a refusal fails the job. */
import { Client } from './client.js';
import { resourceVersionIn, revisionOf } from './event-scanner.js';
import { percentile, wallClock, type CreateJob, type Created, type UpdateJob, type Updated } from './jobs.js';
import { collectionPathOf, pathOf, textOf } from './objects.js';

const created = 201;
const ok = 200;

export async function createJob({ target, objects, writers }: CreateJob): Promise<Created> {
  const client = new Client(target, 'HTTP/1.1');
  const texts = Array.from({ length: objects }, (_, index) => textOf(index)('', 0));
  const resourceVersions: string[] = Array.from({ length: objects }, () => '');
  const latenciesMs = new Float64Array(objects);
  let next = 0;

  const write = async (): Promise<void> => {
    for (let index = next++; index < objects; index = next++) {
      const sentAt = performance.now();
      const answer = await client.write('POST', collectionPathOf(index), texts[index]!);
      latenciesMs[index] = performance.now() - sentAt;
      if (answer.status !== created) throw new Error(`POST of object ${index}: ${answer.status} ${answer.body.toString('utf8', 0, 300)}`);
      resourceVersions[index] = resourceVersionIn(answer.body);
    }
  };
  const startedAt = performance.now();
  try {
    await Promise.all(Array.from({ length: writers }, write));
    return {
      elapsedMs: performance.now() - startedAt,
      p50Ms: percentile(latenciesMs, 0.5),
      p99Ms: percentile(latenciesMs, 0.99),
      resourceVersions,
    };
  } finally {
    client.close();
  }
}

export async function updateJob({ target, writers, resourceVersions, updatesMax, updateMsMax }: UpdateJob): Promise<Updated> {
  const client = new Client(target, 'HTTP/1.1');
  const current = [...resourceVersions];
  const texts = current.map((_, index) => textOf(index));
  const revisions: number[] = [];
  const indexes: number[] = [];
  const latenciesMs: number[] = [];
  const startedAt = wallClock();
  let begun = 0;

  /** Writer w owns the objects w, w + writers, …, so that any conflict of a PUT is the server's fault. */
  const write = async (_: unknown, writer: number): Promise<void> => {
    for (let index = writer, round = 1; begun < updatesMax && wallClock() - startedAt < updateMsMax; index += writers) {
      if (index >= current.length) {
        index = writer;
        round += 1;
      }
      begun += 1;
      const sentAt = performance.now();
      const answer = await client.write('PUT', pathOf(index), texts[index]!(current[index]!, round));
      latenciesMs.push(performance.now() - sentAt);
      if (answer.status !== ok) throw new Error(`PUT of object ${index}: ${answer.status} ${answer.body.toString('utf8', 0, 300)}`);
      current[index] = resourceVersionIn(answer.body);
      revisions.push(revisionOf(current[index]!));
      indexes.push(index);
    }
  };
  try {
    await Promise.all(Array.from({ length: writers }, write));
    const elapsedMs = wallClock() - startedAt;
    return {
      startedAt,
      elapsedMs,
      p50Ms: percentile(latenciesMs, 0.5),
      p99Ms: percentile(latenciesMs, 0.99),
      revisions: Float64Array.from(revisions),
      indexes: Int32Array.from(indexes),
    };
  } finally {
    client.close();
  }
}
