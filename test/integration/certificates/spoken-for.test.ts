/**
 * Whom a certificate authorizes (F18, F31): exactly one spelling names a shard or cache; a spelling
 * close to it names nobody.
 */
import { X509Certificate } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from '../../support/test.js';
import { parseCaller } from '../../../src/certificates/caller-from-certificate.js';
import { parseSpokenFor } from '../../../src/certificates/spoken-for.js';
import { formatSpokenFor, type Caller, type SpokenFor } from '../../../src/domain/caller.js';
import { isMaster } from '../../../src/domain/caller.js';
import { parseShardName } from '../../../src/domain/shard.js';
import { shared } from '../../support/shared.js';
import { OpensslAuthority, type Named } from '../../support/certificates/openssl-authority.js';

const amber: SpokenFor = { kind: 'shard', shard: parseShardName('amber')! };
const region: SpokenFor = { kind: 'cache', name: 'region-1' };

const understood: readonly (readonly [readonly string[], SpokenFor])[] = [
  [['strata://shard/amber'], amber],
  [['strata://cache/region-1'], region],
  [['strata://syncer/edge-1'], { kind: 'syncer', name: 'edge-1' }],
  [['strata://shard/root:amber-1'], { kind: 'shard', shard: parseShardName('root:amber-1')! }],
  [['spiffe://acme.example/ns/default', 'strata://shard/amber', 'https://strata.example/shard/birch'], amber],
];

for (const [uris, spokenFor] of understood) {
  test(`one URI names whom a certificate speaks for, and formatting the name gives the same URI: ${uris.join(' ')}`, (t) => {
    t.deepEqual(parseSpokenFor(uris), spokenFor);
    t.true(uris.includes(formatSpokenFor(spokenFor)));
  });
}

const notUnderstood: readonly (readonly string[])[] = [
  [],
  ['spiffe://acme.example/shard/amber'],
  ['strata://shard/amber', 'strata://shard/birch'],
  ['strata://shard/amber', 'strata://shard/amber'],
  ['strata://shard/amber', 'strata://cache/amber'],
  ['strata://shard/amber', 'STRATA://shard/birch'],
  ['strata://shard/amber', ' strata://shard/birch'],
  ['strata://shard/amber', 'strata:nothing'],
  ['STRATA://shard/amber'],
  ['Strata://shard/amber'],
  ['strata://SHARD/amber'],
  ['strata://shard/Amber'],
  ['strata://shard/'],
  ['strata://shard'],
  ['strata://amber'],
  ['strata:shard/amber'],
  ['strata:/shard/amber'],
  ['strata:///shard/amber'],
  ['strata://shard/amber/'],
  ['strata://shard//amber'],
  ['strata://shard/birch/amber'],
  ['strata://shard/../amber'],
  ['strata://shard/.'],
  ['strata://shard/*'],
  ['strata://shard:443/amber'],
  ['strata://admin@shard/amber'],
  ['strata://shard/amber?x=1'],
  ['strata://shard/amber#x'],
  ['strata://shard/%61mber'],
  ['strata://shard/amber%00'],
  ['strata://shard/amber\0'],
  ['strata://shard/amber\n'],
  [' strata://shard/amber'],
  ['strata://shard/amber '],
  ['strata://shard/аmber'],
  [`strata://shard/${'a'.repeat(62)}`],
  ['strata://cache/Region'],
  ['strata://cache/-region'],
  ['strata://cache/re:gion'],
  [`strata://cache/${'a'.repeat(64)}`],
  ['strata://masters/amber'],
];

for (const uris of notUnderstood) {
  test(`a URI close to a valid one names nobody: ${JSON.stringify(uris)}`, (t) => {
    t.is(parseSpokenFor(uris), undefined);
  });
}

const authority = shared(
  async () => {
    const folder = await mkdtemp(join(tmpdir(), 'strata-spoken-for-'));
    return { folder, issuer: OpensslAuthority.create(folder) };
  },
  ({ folder }) => rm(folder, { recursive: true, force: true }),
);

async function callerOf(subject: Named): Promise<Caller> {
  const { certificate } = await (await authority()).issuer.issue(subject);
  return parseCaller(new X509Certificate(certificate));
}

test('a URI beside the group strata names the shard or cache for which openssl issued the certificate', async (t) => {
  t.deepEqual((await callerOf({ user: 'any', groups: ['strata'], uris: ['strata://shard/amber'] })).speaksFor, amber);
  t.deepEqual((await callerOf({ user: 'any', groups: ['dev', 'strata'], uris: ['strata://cache/region-1'] })).speaksFor, region);
});

const hostile: Readonly<Record<string, Named>> = {
  'the name in the CN alone': { user: 'amber', groups: ['strata'] },
  'the URI in the CN': { user: 'strata://shard/amber', groups: ['strata'] },
  'the URI in an O': { user: 'amber', groups: ['strata', 'strata://shard/amber'] },
  'the URI as a DNS name': { user: 'amber', groups: ['strata'], alternativeNames: 'DNS:strata://shard/amber' },
  'the URI as a mail address': { user: 'amber', groups: ['strata'], alternativeNames: 'email:strata://shard/amber' },
  'the URI without the group': { user: 'amber', groups: [], uris: ['strata://shard/amber'] },
  'a group that is only near': { user: 'amber', groups: ['Strata', 'strata '], uris: ['strata://shard/amber'] },
  'two URIs': { user: 'amber', groups: ['strata'], uris: ['strata://shard/amber', 'strata://shard/birch'] },
  'names that cannot be read': { user: 'amber', groups: ['strata'], alternativeNames: 'DER:0500' },
  'names that end early': { user: 'amber', groups: ['strata'], alternativeNames: 'DER:30168614737472617461' },
};

for (const [what, subject] of Object.entries(hostile)) {
  test(`a signed certificate names nobody with ${what}`, async (t) => {
    const caller = await callerOf(subject);

    t.is(caller.user, subject.user);
    t.is(caller.speaksFor, undefined);
  });
}

test('a master whose names cannot be read is still a master', async (t) => {
  t.true(isMaster(await callerOf({ user: 'root', groups: ['system:masters'], alternativeNames: 'otherName:1.2.3.4;UTF8:odd' })));
});
