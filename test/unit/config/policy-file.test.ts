import { test } from '../../support/test.js';
import type { Log, LogFields } from '../../../src/diagnostics/log.js';
import type { LinkPolicies } from '../../../src/domain/link-policies.js';
import { PolicyFile } from '../../../src/config/files/policy-file.js';
import { loadSettings } from '../../../src/config/settings.js';
import { ManualClock } from '../../support/store/manual-clock.js';
import { aPolicy } from '../../support/link-rules.js';

const pollMs = 10_000;

/** The server's view of a file that is rewritten. `edit` lets one poll pass. */
function watched(first: string, flags: Readonly<Record<string, string>> = { config: 'strata.yaml' }) {
  let text: string | Error = first;
  const received: LinkPolicies[] = [];
  const logged: [string, LogFields][] = [];
  const write = (event: string, fields: LogFields = {}): void => void logged.push([event, fields]);
  const log: Log = { debug: write, info: write, warn: write, error: write, child: () => log };
  const clock = new ManualClock();
  const sources = {
    flags,
    environment: {},
    readFile: () => {
      if (text instanceof Error) throw text;
      return text;
    },
  };
  const watch = PolicyFile.watch({ clock, log, sources, running: loadSettings(sources) }, (policies) => received.push(policies));
  return {
    received,
    logged,
    clock,
    close: () => watch?.close(),
    reload: () => watch?.reload(),
    setText: (next: string | Error): void => void (text = next),
    edit: (next: string | Error): void => {
      text = next;
      clock.advance(pollMs);
    },
  };
}

const following = (type: string): string => `parent:\n  follow: {types: [${type}]}\nchildren:\n  eu: {offer: {types: [${type}]}}\n`;

test('changed policies are reported at the next poll, once', (t) => {
  const { received, logged, edit, clock } = watched(following('secrets'));

  clock.advance(pollMs);
  t.deepEqual(received, []);
  edit(following('roles.rbac.authorization.k8s.io'));
  clock.advance(5 * pollMs);

  const policy = aPolicy({ types: ['roles.rbac.authorization.k8s.io'] });
  t.deepEqual(received, [{ forward: [], follow: policy, children: new Map([['eu', { accept: [], offer: policy }]]) }]);
  t.deepEqual(logged, [['policies.reloaded', { file: 'strata.yaml' }]]);
});

test('policies stay while the file is empty, because somebody may be writing it', (t) => {
  const { received, logged, edit } = watched(following('secrets'));

  edit('');
  edit(following('secrets'));

  t.deepEqual(received, []);
  t.deepEqual(
    logged.map(([event]) => event),
    ['policies.invalid'],
  );
  t.regex(String(logged[0]?.[1]['problems']), /^strata\.yaml: is empty now/);
  edit('{}');
  t.is(received.length, 1);
});

test('changed policies take effect with a warning if their accept lets nothing in', (t) => {
  const { received, logged, edit } = watched(following('secrets'));

  edit(`children:\n  eu: {accept: {types: ['*']}}\n`);

  t.is(received.length, 1);
  t.deepEqual(
    logged.map(([event]) => event),
    ['policies.reloaded', 'links.idle'],
  );
});

test('a file that is rewritten to the same meaning reports nothing', (t) => {
  const { received, logged, edit } = watched(following('secrets'));

  edit(`# a comment\n${following('secrets')}`);

  t.deepEqual([received, logged], [[], []]);
});

test('an invalid file is logged once, with its lines, and the old policies stay until the file is valid again', (t) => {
  const { received, logged, edit, clock } = watched(following('secrets'));

  edit(following('Bad'));
  clock.advance(3 * pollMs);
  edit(following('secrets'));
  edit(following('configmaps'));

  t.is(received.length, 1);
  t.deepEqual(
    logged.map(([event]) => event),
    ['policies.invalid', 'policies.reloaded'],
  );
  t.regex(String(logged[0]?.[1]['problems']), /strata\.yaml line 2: parent\.follow\.types\[0\]/);
});

test('an unreadable file is logged once, and takes effect once it can be read again', (t) => {
  const { received, logged, edit, clock } = watched(following('secrets'));

  edit(new Error('ENOENT'));
  clock.advance(3 * pollMs);
  edit(following('configmaps'));

  t.is(received.length, 1);
  t.deepEqual(logged, [
    ['policies.unreadable', { file: 'strata.yaml', message: 'ENOENT' }],
    ['policies.reloaded', { file: 'strata.yaml' }],
  ]);
});

test('other settings that changed are logged as needing a restart, unless a flag overrides them', (t) => {
  const { received, logged, edit } = watched('', { config: 'strata.yaml', 'log-level': 'warn' });

  edit(`listen: {securePort: 7443}\nlog: {level: debug}\n${following('secrets')}`);

  t.is(received.length, 1);
  t.deepEqual(logged[0], ['settings.need-restart', { file: 'strata.yaml', options: ['--secure-port'] }]);
});

test('without a file there is nothing to watch, and a closed watch polls no more', (t) => {
  const none = watched('', {});
  const closed = watched(following('secrets'));

  closed.close();
  closed.edit(following('configmaps'));

  t.is(none.clock.pending, 0);
  t.is(closed.clock.pending, 0);
  t.deepEqual(closed.received, []);
});

test('an explicit reload returns its result, even if nothing changed', (t) => {
  const { received, logged, edit, reload, setText } = watched(following('secrets'));

  t.deepEqual(reload(), { kind: 'unchanged' });
  setText(following('roles.rbac.authorization.k8s.io'));
  t.deepEqual(reload(), { kind: 'changed' });
  t.is(received.length, 1);
  edit(following('Bad'));
  for (let asked = 0; asked < 2; asked += 1) t.like(reload(), { kind: 'failed' });
  setText(new Error('ENOENT'));
  t.like(reload(), { kind: 'failed', error: { message: 'strata.yaml cannot be read' } });
  t.deepEqual(
    logged.map(([event]) => event),
    ['policies.reloaded', 'policies.invalid', 'policies.unreadable'],
  );
});
