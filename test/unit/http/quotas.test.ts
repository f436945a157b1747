/** How much of the server one caller may use. */
import { test } from '../../support/test.js';
import { Quotas, type Peer } from '../../../src/http/quotas.js';

const limits = {
  requests: 100,
  watches: 100,
  connections: 100,
  bufferedBytes: 1_000,
  waitingBytes: 1_000,
  unreadBytes: 1_000,
  selectorBytes: 1_000,
};
const shard = (name: string): Peer => ({ id: `shard ${name}`, kind: 'shard' });
const admin: Peer = { id: 'masters admin', kind: 'masters' };

function takeAll(quotas: Quotas, peer: Peer): number {
  const quota = quotas.join(peer);
  let taken = 0;
  while (quota.requests.tryReserve(1)) taken += 1;
  return taken;
}

test('a caller gets its share, all callers but masters together nine tenths, and masters the rest', (t) => {
  const quotas = new Quotas(limits, { callerSharePercent: 40 });

  t.is(takeAll(quotas, shard('amber')), 40);
  t.is(takeAll(quotas, shard('birch')), 40);
  t.is(takeAll(quotas, shard('cedar')), 10);
  t.is(takeAll(quotas, admin), 10);
  t.is(quotas.used('requests'), 100);
});

test('a master alone may use everything', (t) => {
  t.is(takeAll(new Quotas(limits, { callerSharePercent: 40 }), admin), 100);
});

test('two connections of one caller have one share, which lives until both are closed', (t) => {
  const quotas = new Quotas(limits, { callerSharePercent: 40 });
  const [first, second] = [quotas.join(shard('amber')), quotas.join(shard('amber'))];

  t.is(first, second);
  quotas.leave(shard('amber'));
  t.is(quotas.join(shard('amber')), first);
  quotas.leave(shard('amber'));
  quotas.leave(shard('amber'));
  t.not(quotas.join(shard('amber')), first);
});

test('a limit of one still lets every caller in, one at a time', (t) => {
  const quotas = new Quotas({ ...limits, requests: 1 }, { callerSharePercent: 1 });

  t.is(takeAll(quotas, shard('amber')), 1);
  t.is(takeAll(quotas, admin), 0);
});

test('all callers without a certificate share a tenth, whatever their addresses', (t) => {
  const quotas = new Quotas(limits, { callerSharePercent: 40 });

  t.is(takeAll(quotas, { id: 'address 192.0.2.1', kind: 'anonymous' }), 10);
  t.is(takeAll(quotas, { id: 'address 192.0.2.2', kind: 'anonymous' }), 0);
  t.is(takeAll(quotas, shard('amber')), 40);
});
