/** When a reader goes away, its list is closed and nothing more of it is read. */
import { test } from '../../support/test.js';
import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { PassThrough, Writable } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';
import { anonymous } from '../../../src/domain/caller.js';
import { send } from '../../../src/http/send.js';
import { anExchange } from '../../support/an-exchange.js';
import type { Call, KubePorts } from '../../../src/web/kube/call.js';
import { Gzip } from '../../../src/web/formats/gzip.js';
import { answerList } from '../../../src/web/kube/list.js';
import { respondRefused } from '../../../src/web/respond.js';

/** A response whose reader reads `bytesMax`, then nothing more until it goes away. */
class StuckResponse extends Writable {
  statusCode = 0;
  taken = 0;
  readonly #bytesMax: number;

  constructor(bytesMax: number) {
    super({ highWaterMark: 10 });
    this.#bytesMax = bytesMax;
  }

  setHeader(): void {}

  override _write(chunk: Buffer, _: string, done: () => void): void {
    this.taken += chunk.length;
    if (this.taken <= this.#bytesMax) done();
  }
}

const pieceBytes = 128 * 1024;
const ports = { limits: { pieceBytesMax: pieceBytes }, gzip: new Gzip() } as unknown as KubePorts;

/** Pieces of that length; `state` has how many were requested and whether the list was closed. */
function pieces(count: number): { list: AsyncGenerator<Uint8Array>; state: { asked: number; closed: boolean } } {
  const state = { asked: 0, closed: false };
  async function* all(): AsyncGenerator<Uint8Array> {
    try {
      for (; state.asked < count;) {
        state.asked += 1;
        await turn();
        yield Buffer.alloc(pieceBytes);
      }
    } finally {
      state.closed = true;
    }
  }
  return { list: all(), state };
}

function aCall(response: StuckResponse, headers: Record<string, string> = {}): Call {
  const request = Object.assign(new PassThrough(), { method: 'GET', headers, httpVersionMajor: 1, complete: true, socket: response });
  const exchange = anExchange(request as unknown as IncomingMessage, response as unknown as ServerResponse, anonymous);
  return { exchange, request: exchange.request } as Call;
}

const json = { encoding: 'json', form: 'object', tableVersion: 'v1' } as const;

for (const bytesMax of [0, 250_000, 1_000_000]) {
  for (const headers of [{}, { 'accept-encoding': 'gzip' }]) {
    test(`a list whose reader goes away after ${bytesMax} bytes${'accept-encoding' in headers ? ' of gzip' : ''} is closed, and no more of it is read`, async (t) => {
      const response = new StuckResponse(bytesMax);
      const { list, state } = pieces(1_000_000);

      const answering = answerList(aCall(response, headers), list, json, ports);
      for (let i = 0; i < 50; i++) await turn();
      response.destroy();
      await answering;

      t.true(state.closed);
      t.true(state.asked < 1_000_000);
    });
  }
}

test('a list whose reader was gone before it began is closed at once', async (t) => {
  const response = new StuckResponse(0);
  const { list, state } = pieces(1_000);
  response.destroy();

  await answerList(aCall(response), list, json, ports);

  t.true(state.closed);
  t.true(state.asked <= 3);
});

test('the list is read no faster than its reader reads', async (t) => {
  const response = new StuckResponse(500_000);
  const { list, state } = pieces(1_000);

  void answerList(aCall(response), list, json, ports);
  for (let i = 0; i < 100; i++) await turn();

  t.true(state.asked < 12, String(state.asked));
  response.destroy();
});

test('nothing is read from a stream whose exchange has ended', async (t) => {
  const { exchange } = aCall(new StuckResponse(0));
  exchange.end();
  const { list, state } = pieces(10);

  await send({ [Symbol.asyncIterator]: () => list } as never, exchange);

  t.is(state.asked, 0);
});

test('a refusal in place of a compressed answer does not claim to be compressed', (t) => {
  const request = Object.assign(new IncomingMessage(new Socket()), { method: 'GET', httpVersionMajor: 1 });
  const response = new ServerResponse(request);
  response.setHeader('content-encoding', 'gzip');
  respondRefused(anExchange(request, response, anonymous), { code: 504, text: '{}', retryAfterSeconds: undefined });
  t.false(response.hasHeader('content-encoding'));
  t.is(response.statusCode, 504);
});
