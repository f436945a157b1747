/**
 * The process that makes the load. It is separate so that it disturbs neither the measured server
 * nor the benchmark. It answers one message for each job, and exits with its parent.
 */
import { steadyJob, witnessJob } from './load-delays.js';
import { floodJob } from './load-flood.js';
import { compareJob, pushBareJob, pushJob, pushManyJob } from './load-pushes.js';
import type { JobName, Jobs, Line } from './jobs.js';
import type { LoadRequest, LoadReply } from './load-process.js';

const jobs: { [Name in JobName]: (job: Jobs[Name][0], line: Line) => Promise<Jobs[Name][1]> } = {
  push: pushJob,
  pushMany: pushManyJob,
  pushBare: pushBareJob,
  compare: compareJob,
  flood: floodJob,
  steady: steadyJob,
  witness: witnessJob,
};

const news = new Map<number, (value: number) => void>();

process.on('message', (asked: LoadRequest) => {
  switch (asked.kind) {
    case 'tell':
      news.get(asked.id)?.(asked.value);
      return;
    case 'ask':
      void answer(asked.id, asked.name, asked.job);
  }
});
process.on('disconnect', () => process.exit(0));

async function answer<Name extends JobName>(id: number, name: Name, job: Jobs[Name][0]): Promise<void> {
  const received = new Promise<number>((resolve) => news.set(id, resolve));
  const startedAt = performance.now();
  const before = process.cpuUsage();
  try {
    const value = await jobs[name](job, { ready: () => reply({ id, kind: 'ready' }), received });
    const { user, system } = process.cpuUsage(before);
    reply({ id, kind: 'answer', value, busy: (user + system) / 1_000 / (performance.now() - startedAt) });
  } catch (error) {
    reply({ id, kind: 'failed', message: error instanceof Error ? error.message : String(error) });
  } finally {
    news.delete(id);
  }
}

function reply(message: LoadReply): void {
  process.send!(message);
}
