/**
 * The reader of certificate fields must agree with @peculiar/x509, and must reject a truncated
 * certificate.
 */
import 'reflect-metadata';
import { X509Certificate, webcrypto } from 'node:crypto';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as x509 from '@peculiar/x509';
import type { ExecutionContext } from 'ava';
import { test } from '../../support/test.js';
import { parseCaller } from '../../../src/certificates/caller-from-certificate.js';
import {
  attributeIds,
  extensionIds,
  extensionsOf,
  fieldsOf,
  pathLengthOf,
  subjectOf,
  urisOf,
} from '../../../src/certificates/certificate-fields.js';
import { OpensslAuthority } from '../../support/certificates/openssl-authority.js';

const day = 86_400_000;
const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;

async function selfSigned(name: x509.Name, extensions: x509.Extension[]): Promise<X509Certificate> {
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
  const [notBefore, notAfter] = [new Date(Date.now() - day), new Date(Date.now() + day)];
  const options = { serialNumber: '01', name, notBefore, notAfter, signingAlgorithm: algorithm, keys, extensions };
  const certificate = await x509.X509CertificateGenerator.createSelfSigned(options, webcrypto);
  return new X509Certificate(certificate.toString('pem'));
}

async function withExtensions(t: ExecutionContext, extensions: string): Promise<X509Certificate> {
  const folder = async (): Promise<string> => {
    const made = await mkdtemp(join(tmpdir(), 'strata-extensions-'));
    t.teardown(() => rm(made, { recursive: true, force: true }));
    return made;
  };
  const authority = OpensslAuthority.create(await folder());
  const { certificateFile } = await authority.intermediate(await folder(), 'below', extensions);
  return new X509Certificate(await readFile(certificateFile, 'utf8'));
}

const sections = [
  'basicConstraints=critical,CA:TRUE',
  'basicConstraints=critical,CA:TRUE,pathlen:0',
  'basicConstraints=CA:TRUE,pathlen:127',
  'basicConstraints=critical,CA:FALSE',
  'basicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign\nnameConstraints=critical,permitted;URI:.example.org',
  'subjectAltName=URI:strata://shard/amber,DNS:amber.example,IP:10.0.0.1,email:a@example,URI:spiffe://a/b,dirName:names\n[names]\nCN=x',
  `subjectAltName=${Array.from({ length: 40 }, (_, i) => `URI:spiffe://example/a/rather/long/path/${i}`).join(',')}`,
  'subjectAltName=critical,otherName:1.2.3.4;UTF8:odd',
];

for (const section of sections) {
  test(`extensions are read as @peculiar/x509 reads them: ${section.slice(0, 80).replaceAll('\n', ' ')}`, async (t) => {
    const certificate = await withExtensions(t, section);
    const expected = new x509.X509Certificate(Uint8Array.from(certificate.raw));

    const extensions = extensionsOf(fieldsOf(certificate));

    t.deepEqual(
      extensions.map(({ isCritical, value }) => [isCritical, Buffer.from(value).toString('hex')]),
      [...expected.extensions].map(({ critical, value }) => [critical, Buffer.from(value).toString('hex')]),
    );
    for (const { id, value } of extensions) {
      if (id === extensionIds.basicConstraints)
        t.is(pathLengthOf(value), expected.getExtension(x509.BasicConstraintsExtension)?.pathLength ?? Infinity);
      if (id !== extensionIds.subjectAlternativeName) continue;
      const names = expected.getExtension(x509.SubjectAlternativeNameExtension)?.names.items ?? [];
      t.deepEqual(
        urisOf(value),
        [...names].filter(({ type }) => type === 'url').map((name) => name.value),
      );
    }
  });
}

test('a certificate without extensions has none', async (t) => {
  t.deepEqual(extensionsOf(fieldsOf(await selfSigned(new x509.Name('CN=amber'), []))), []);
});

test('a truncated certificate, or one with wrong lengths, is refused', async (t) => {
  const { raw } = await withExtensions(t, sections[5]!);

  for (let length = 0; length < raw.length; length++) t.throws(() => extensionsOf(fieldsOf({ raw: raw.subarray(0, length) })));
  for (const wrong of ['', '3080', '30', '3081', '3084ffffffff', '3085', '30020500', '3003020100']) {
    t.throws(() => extensionsOf(fieldsOf({ raw: Buffer.from(wrong, 'hex') })), undefined, wrong);
  }
});

test('a path length may be of any size, but not negative or empty', (t) => {
  for (const [hex, expected] of [
    ['30060101ff020103', 3],
    ['30070101ff02020080', 128],
    ['30090101ff02047fffffff', 2_147_483_647],
    ['30030101ff', Infinity],
  ] as const)
    t.is(pathLengthOf(Buffer.from(hex, 'hex')), expected);
  for (const wrong of ['30060101ff020180', '30050101ff0200']) t.throws(() => pathLengthOf(Buffer.from(wrong, 'hex')), undefined, wrong);
});

test('an authority with a long path length vouches for its clients', async (t) => {
  const [section] = ['basicConstraints=critical,CA:TRUE,pathlen:255'];
  t.is(
    pathLengthOf(extensionsOf(fieldsOf(await withExtensions(t, section))).find(({ id }) => id === extensionIds.basicConstraints)!.value),
    255,
  );
});

test('a URI in a constructed encoding makes the alternative names unreadable, so it hides no second claim', (t) => {
  const parts = Buffer.from('30098601 61a604160262 63'.replaceAll(' ', ''), 'hex');

  t.throws(() => urisOf(parts), { message: /put together/ });
});

/** A DER element: a tag and the content as hexadecimal digits. */
function element(tag: string, ...contents: readonly string[]): string {
  const content = contents.join('');
  return tag + (content.length / 2).toString(16).padStart(2, '0') + content;
}

/** The fields of a certificate up to and including its subject. */
function fieldsWith(...attributes: readonly (readonly [id: string, value: string])[]): ReturnType<typeof fieldsOf> {
  const names = attributes.map(([id, value]) => element('31', element('30', element('06', id), value)));
  const upToSubject = [element('a0', '020102'), '020101', '3000', '3000', '3000', element('30', ...names)];
  return fieldsOf({ raw: Buffer.from(element('30', element('30', ...upToSubject)), 'hex') });
}

const [commonName, organization, uniqueIdentifier] = ['550403', '55040a', '55042d'];
const hexOf = (text: string, encoding: BufferEncoding = 'utf8'): string => Buffer.from(text, encoding).toString('hex');

test('a subject is read in every string type, whatever its other attributes contain', (t) => {
  const fields = fieldsWith(
    [commonName!, element('0c', hexOf('zoë'))],
    [uniqueIdentifier!, element('03', '0001')],
    [organization!, element('13', hexOf('printable'))],
    [organization!, element('14', hexOf('é', 'latin1'))],
    [organization!, element('1e', '00e9d83dde00')],
    [organization!, element('1c', '0001f600')],
  );

  t.deepEqual(subjectOf(fields, attributeIds.commonName), ['zoë']);
  t.deepEqual(subjectOf(fields, attributeIds.organization), ['printable', 'é', 'é😀', '😀']);
});

test('a group that is not text, or has a constructed encoding, names nobody', (t) => {
  for (const [what, value] of [
    ['no UTF-8', element('0c', 'fffe')],
    ['a bit string', element('03', '0001')],
    ['constructed', element('2c', element('0c', hexOf('system:')), element('0c', hexOf('masters')))],
    ['half a character', element('1e', '004100')],
    ['no character', element('1c', '00110000')],
  ] as const)
    t.throws(() => subjectOf(fieldsWith([organization!, value]), attributeIds.organization), undefined, what);
});

test('of several CNs the last one names the caller, and every O is a group, whatever it holds', async (t) => {
  const values = (key: 'CN' | 'O', ...texts: readonly string[]) => texts.map((utf8String) => ({ [key]: [{ utf8String }] }));
  const name = new x509.Name([...values('CN', 'old'), ...values('O', 'strata', 'a,O=b', 'a\nO=c'), ...values('CN', 'zoë')]);

  const { user, groups } = parseCaller(await selfSigned(name, []));

  t.is(user, 'zoë');
  t.deepEqual(groups, ['strata', 'a,O=b', 'a\nO=c']);
});

test('URIs in two subject alternative name extensions count as two', async (t) => {
  const name = new x509.Name([{ O: [{ utf8String: 'strata' }] }, { CN: [{ utf8String: 'amber' }] }]);
  const claim = (shard: string) => new x509.SubjectAlternativeNameExtension([{ type: 'url', value: `strata://shard/${shard}` }]);

  const one = parseCaller(await selfSigned(name, [claim('amber')]));
  const two = parseCaller(await selfSigned(name, [claim('amber'), claim('birch')]));

  t.deepEqual(one.speaksFor && { ...one.speaksFor }, { kind: 'shard', shard: 'amber' } as never);
  t.is(two.user, 'amber');
  t.is(two.speaksFor, undefined);
});
