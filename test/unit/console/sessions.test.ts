import { randomBytes } from 'node:crypto';
import { test } from '../../support/test.js';
import { ConsoleSessions } from '../../../src/console/sessions.js';
import type { Caller } from '../../../src/domain/caller.js';
import { ManualClock } from '../../support/store/manual-clock.js';

const master: Caller = { user: 'ops', groups: ['system:masters'] };

test('a link opens one session, which reads as the caller who asked for the link', (t) => {
  const { sessions } = someSessions();
  const link = sessions.makeLink(master);
  const session = sessions.enter(link)!;

  t.is(sessions.callerOf(session), master);
  t.is(sessions.enter(link), undefined);
  t.is(sessions.callerOf(session), master);
});

test('a link is not accepted as a session, nor a session as a link', (t) => {
  const { sessions } = someSessions();
  const link = sessions.makeLink(master);

  t.is(sessions.callerOf(link), undefined);
  t.is(sessions.enter(sessions.enter(link)!), undefined);
  t.is(sessions.callerOf(''), undefined);
});

test('a link can be opened for a minute, and a session lasts for an hour', (t) => {
  const { sessions, clock } = someSessions();
  const [early, late] = [sessions.makeLink(master), sessions.makeLink(master)];

  clock.advance(60_000);
  const session = sessions.enter(early)!;
  clock.advance(1);
  t.is(sessions.enter(late), undefined);
  clock.advance(3_600_000 - 1);
  t.is(sessions.callerOf(session), master);
  clock.advance(1);
  t.is(sessions.callerOf(session), undefined);
});

test('a session ends when the certificate of its caller expires', (t) => {
  const { sessions, clock } = someSessions();
  const caller: Caller = { ...master, validUntilMs: clock.wallMs() + 10_000 };
  const session = sessions.enter(sessions.makeLink(caller))!;

  clock.advance(10_000);
  t.is(sessions.callerOf(session), caller);
  clock.advance(1);
  t.is(sessions.callerOf(session), undefined);
});

test('when the client CAs change, every link and session ends', (t) => {
  const { sessions } = someSessions();
  const [session, link] = [sessions.enter(sessions.makeLink(master))!, sessions.makeLink(master)];
  sessions.endAll();

  t.is(sessions.callerOf(session), undefined);
  t.is(sessions.enter(link), undefined);
});

test('if a caller has too many links, that caller’s oldest link makes room, and nobody else’s', (t) => {
  const { sessions } = someSessions();
  const others = sessions.makeLink({ user: 'other', groups: ['system:masters'] });
  const links = Array.from({ length: 11 }, () => sessions.makeLink(master));

  t.is(sessions.enter(links[0]!), undefined);
  t.not(sessions.enter(links[1]!), undefined);
  t.not(sessions.enter(links[10]!), undefined);
  t.not(sessions.enter(others), undefined);
});

test('if a caller has too many sessions, that caller’s oldest session makes room, and nobody else’s', (t) => {
  const { sessions } = someSessions();
  const other: Caller = { user: 'other', groups: ['system:masters'] };
  const others = sessions.enter(sessions.makeLink(other))!;
  const opened = Array.from({ length: 51 }, () => sessions.enter(sessions.makeLink(master))!);

  t.is(sessions.callerOf(opened[0]!), undefined);
  t.is(sessions.callerOf(opened[1]!), master);
  t.is(sessions.callerOf(others), other);
});

test('if all callers together have too many links, the oldest makes room', (t) => {
  const { sessions } = someSessions();
  const links = Array.from({ length: 1_001 }, (_, i) => sessions.makeLink({ user: `user-${i}`, groups: ['system:masters'] }));

  t.is(sessions.enter(links[0]!), undefined);
  t.not(sessions.enter(links[1]!), undefined);
});

function someSessions() {
  const clock = new ManualClock();
  return { clock, sessions: new ConsoleSessions({ clock, randomBytes }) };
}
