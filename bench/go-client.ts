/**
 * How many gets and creates a second does a client written in Go see, over one connection of HTTP/2, 16 at a time?
 *
 * kcp's controllers and informers are such clients; the load generator of the other questions speaks HTTP/1.1 and is written in
 * JavaScript, so it does not show what HTTP/2 costs the server. Left out with a message where Go is missing. Created objects are deleted again.
 */
import { join } from 'node:path';
import { writeFile } from 'node:fs/promises';
import { installed, runProgram } from '../test/clients/installed.js';
import { projectFile } from '../test/support/project.js';
import { collectionPathOf, pathOf, textOf } from './harness/objects.js';
import { check, type Answer, type Bench, type Limit, type Question } from './harness/question.js';

const getsPerSecondMin = 8_500;
const createsPerSecondMin = 3_000;
const getsMax = 40_000;
const createsMax = 10_000;
const buildMsMax = 300_000;
const runMsMax = 300_000;

type Request = Readonly<{ method: 'GET' | 'POST' | 'DELETE'; path: string; body?: string; contains?: string }>;

/** What the program prints of each phase. */
type Measured = Readonly<{
  method: Request['method'];
  requests: number;
  elapsedMs: number;
  p50Ms: number;
  p99Ms: number;
  protocol: string;
  wrong: number;
  firstWrong: string;
}>;

export const goClient: Question = {
  name: 'go-client',
  asks: 'How many gets and creates a second does a Go client see over HTTP/2, 16 at a time on one connection?',
  async ask(bench) {
    if ((await installed('go', 'version')) === undefined) {
      console.error('go-client: left out, go is not installed');
      return { figures: [], checks: [] };
    }
    const measured = await measure(bench, await build(bench.folder));
    const [gets, creates] = [measured.find(({ method }) => method === 'GET'), measured.find(({ method }) => method === 'POST')];
    if (gets === undefined || creates === undefined) throw new Error('the Go client reported no gets or no creates');
    return {
      figures: [...figuresOf('gets', gets, getsPerSecondMin), ...figuresOf('creates', creates, createsPerSecondMin)],
      checks: measured.map(({ method, requests, wrong, firstWrong, protocol }) =>
        check(
          `every ${method} is answered correctly over HTTP/2`,
          wrong === 0 && protocol === 'HTTP/2.0',
          `${wrong} of ${requests} were not, over ${protocol}: ${firstWrong}`,
        ),
      ),
    };
  },
};

async function build(folder: string): Promise<string> {
  const program = join(folder, 'go-client');
  const { code, stderr } = await runProgram('go', ['build', '-o', program, '.'], {
    cwd: projectFile('bench', 'go-client'),
    environment: { CGO_ENABLED: '0' },
    timeoutMs: buildMsMax,
  });
  if (code !== 0) throw new Error(`the Go client cannot be built: ${stderr.slice(-1_000)}`);
  return program;
}

async function measure({ server, folder, options, acknowledged }: Bench, program: string): Promise<readonly Measured[]> {
  const file = join(folder, 'go-client.jsonl');
  const requests = [...gets(acknowledged.resourceVersions), ...createsAndDeletes(options.objects)];
  await writeFile(file, requests.map((request) => `${JSON.stringify(request)}\n`).join(''));
  const flags = {
    server: server.url,
    ca: server.certificateFile,
    cert: server.master.certificateFile,
    key: server.master.keyFile,
    requests: file,
    workers: String(options.writers),
  };
  const { code, stdout, stderr } = await runProgram(
    program,
    Object.entries(flags).map(([name, value]) => `--${name}=${value}`),
    { timeoutMs: runMsMax },
  );
  if (code !== 0) throw new Error(`the Go client ended with ${code}: ${stderr.slice(-1_000)}`);
  return stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Measured);
}

/** Of the objects that `create` left, round after round. */
function gets(resourceVersions: readonly string[]): readonly Request[] {
  return Array.from({ length: getsMax }, (_, count) => {
    const index = count % resourceVersions.length;
    return { method: 'GET', path: pathOf(index), contains: `"resourceVersion":"${resourceVersions[index]}"` };
  });
}

/** Of objects beyond those that `create` left; later questions find the server as it was. */
function createsAndDeletes(objects: number): readonly Request[] {
  const indexes = Array.from({ length: Math.min(objects, createsMax) }, (_, count) => objects + count);
  const creates = indexes.map((index): Request => ({ method: 'POST', path: collectionPathOf(index), body: textOf(index)('', 0) }));
  return [...creates, ...indexes.map((index): Request => ({ method: 'DELETE', path: pathOf(index) }))];
}

function figuresOf(name: string, { requests, elapsedMs, p50Ms, p99Ms }: Measured, perSecondMin: number): Answer['figures'] {
  const limit: Limit = { kind: 'at least', value: perSecondMin };
  return [
    { name: `${name} over HTTP/2`, value: requests / (elapsedMs / 1_000), unit: '/s', limit },
    { name: `${name} answered after p50`, value: p50Ms, unit: 'ms' },
    { name: `${name} answered after p99`, value: p99Ms, unit: 'ms' },
  ];
}
