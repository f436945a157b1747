/**
 * A certificate authority for tests. It writes X.509 by itself, because the code that issues
 * certificates is itself under test. The openssl program takes forty times as long;
 * certificates/openssl-authority.ts has what only openssl can write. Keys are P-256.
 */
import { createHash, generateKeyPairSync, randomBytes, sign, type KeyObject } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { join } from 'node:path';

/** A certificate and its key, as files (for other programs) and as text (for our own clients). */
export type Certificate = Readonly<{ certificateFile: string; keyFile: string; certificate: string; key: string }>;

export type Subject = Readonly<{
  user: string;
  groups: readonly string[];
  uris?: readonly string[];
  /** The DNS names and IPv4 addresses of a server. */
  hosts?: readonly string[];
  /** Validity from the present; negative makes an expired certificate. */
  validityDays?: number;
  /** Instead of `validityDays`, for a certificate that expires during the test. */
  validitySeconds?: number;
  /** The purposes of its key; a client's by default. */
  usages?: readonly (keyof typeof usageIds)[];
}>;

const dayMs = 86_400_000;
const lineChars = 64;
const tags = {
  boolean: 0x01,
  integer: 0x02,
  bits: 0x03,
  octets: 0x04,
  id: 0x06,
  text: 0x0c,
  utcTime: 0x17,
  sequence: 0x30,
  set: 0x31,
} as const;
/** The tag of a SEQUENCE's or CHOICE's member that has a number. */
const member = (number: number, isConstructed = false): number => 0x80 + number + (isConstructed ? 0x20 : 0);
const ecdsaWithSha256 = sequence(der(tags.id, Buffer.of(0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2)));
const usageIds = { server: der(tags.id, Buffer.of(0x2b, 6, 1, 5, 5, 7, 3, 1)), client: der(tags.id, Buffer.of(0x2b, 6, 1, 5, 5, 7, 3, 2)) };
/** The last byte of the object identifier of an extension, or of a part of a name. */
const extensionIds = { subjectKey: 14, alternativeNames: 17, basicConstraints: 19, authorityKey: 35, usages: 37 } as const;
const attributeIds = { commonName: 3, organization: 10 } as const;

export class TestAuthority {
  readonly certificateFile: string;
  readonly keyFile: string;
  readonly #folder: string;
  readonly #issuer: Issuer;
  #master: Certificate | undefined;
  #issued = 0;

  /** Keeps its files in `folder`. */
  constructor(folder: string, { name = 'strata-test-authority', validityDays = 30 } = {}) {
    this.#folder = folder;
    this.#issuer = { name: nameOf(name, []), keys: newKeys() };
    this.certificateFile = join(folder, 'ca.crt');
    this.keyFile = join(folder, 'ca.key');
    writeFileSync(this.certificateFile, certificateOfAuthority(this.#issuer, validityDays * dayMs));
    writeFileSync(this.keyFile, this.#issuer.keys.pem);
  }

  get certificate(): string {
    return readFileSync(this.certificateFile, 'utf8');
  }

  /** A certificate of `system:masters`, the same each time. */
  get master(): Certificate {
    return (this.#master ??= this.issue({ user: 'cache-client', groups: ['system:masters'] }));
  }

  /** CN is the user, each O a group, each URI and host an alternative name. */
  issue({ user, groups, uris = [], hosts = [], validityDays = 30, validitySeconds, usages = ['client'] }: Subject): Certificate {
    const keys = newKeys();
    const names = [...uris.map((uri) => der(member(6), Buffer.from(uri))), ...hosts.map(hostName)];
    const extensions = [
      extension('usages', sequence(...usages.map((usage) => usageIds[usage]))),
      ...(names.length === 0 ? [] : [extension('alternativeNames', sequence(...names))]),
    ];
    const validMs = validitySeconds === undefined ? validityDays * dayMs : validitySeconds * 1000;
    const certificate = signed(this.#issuer, { name: nameOf(user, groups), keys, validMs, extensions });
    this.#issued += 1;
    const [certificateFile, keyFile] = ['crt', 'key'].map((suffix) => join(this.#folder, `client-${this.#issued}.${suffix}`)) as [
      string,
      string,
    ];
    writeFileSync(certificateFile, certificate);
    writeFileSync(keyFile, keys.pem);
    return { certificateFile, keyFile, certificate, key: keys.pem };
  }
}

export function selfSigned(hosts: readonly string[]): Pick<Certificate, 'certificate' | 'key'> {
  const issuer = { name: nameOf('self-signed', []), keys: newKeys() };
  const names = extension('alternativeNames', sequence(...hosts.map(hostName)));
  return { certificate: certificateOfAuthority(issuer, 30 * dayMs, [names]), key: issuer.keys.pem };
}

type Keys = Readonly<{ privateKey: KeyObject; pem: string; spki: Buffer; id: Buffer }>;
type Issuer = Readonly<{ name: Buffer; keys: Keys }>;
type Signed = Readonly<{ name: Buffer; keys: Keys; validMs: number; extensions: readonly Buffer[] }>;

function newKeys(): Keys {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const spki = publicKey.export({ type: 'spki', format: 'der' });
  const pem = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  return { privateKey, pem, spki, id: createHash('sha1').update(spki).digest() };
}

function certificateOfAuthority(issuer: Issuer, validMs: number, more: readonly Buffer[] = []): string {
  const isAuthority = sequence(der(tags.boolean, Buffer.of(0xff)));
  const extensions = [extension('basicConstraints', isAuthority, true), extension('subjectKey', der(tags.octets, issuer.keys.id)), ...more];
  return signed(issuer, { ...issuer, validMs, extensions });
}

/** The certificate (RFC 5280, 4.1), as PEM. */
function signed(issuer: Issuer, { name, keys, validMs, extensions }: Signed): string {
  const untilMs = Date.now() + validMs;
  // OpenSSL reads a clock that steps every few milliseconds, so a certificate that starts in this
  // second could be not yet valid.
  const fromMs = Math.min(Date.now() - 60_000, untilMs - dayMs);
  const body = sequence(
    der(member(0, true), der(tags.integer, Buffer.of(2))),
    // Positive, and in the shortest form.
    der(tags.integer, Buffer.of(0x40), randomBytes(8)),
    ecdsaWithSha256,
    issuer.name,
    sequence(time(fromMs), time(untilMs)),
    name,
    keys.spki,
    // The authority key identifier tells several authorities with one name apart.
    der(member(3, true), sequence(extension('authorityKey', sequence(der(member(0), issuer.keys.id))), ...extensions)),
  );
  const certificate = sequence(body, ecdsaWithSha256, der(tags.bits, Buffer.of(0), sign('sha256', body, issuer.keys.privateKey)));
  const lines = certificate.toString('base64').match(new RegExp(`.{1,${lineChars}}`, 'g')) ?? [];
  return ['-----BEGIN CERTIFICATE-----', ...lines, '-----END CERTIFICATE-----', ''].join('\n');
}

function nameOf(commonName: string, organizations: readonly string[]): Buffer {
  const attribute = (id: number, value: string): Buffer =>
    der(tags.set, sequence(der(tags.id, Buffer.of(0x55, 4, id)), der(tags.text, Buffer.from(value))));
  return sequence(
    ...organizations.map((value) => attribute(attributeIds.organization, value)),
    attribute(attributeIds.commonName, commonName),
  );
}

function hostName(host: string): Buffer {
  return isIP(host) === 0 ? der(member(2), Buffer.from(host)) : der(member(7), Buffer.from(host.split('.').map(Number)));
}

function extension(id: keyof typeof extensionIds, value: Buffer, isCritical = false): Buffer {
  const critical = isCritical ? [der(tags.boolean, Buffer.of(0xff))] : [];
  return sequence(der(tags.id, Buffer.of(0x55, 0x1d, extensionIds[id])), ...critical, der(tags.octets, value));
}

function time(ms: number): Buffer {
  return der(
    tags.utcTime,
    Buffer.from(
      `${new Date(ms)
        .toISOString()
        .slice(2)
        .replace(/[-:T]|\..*/g, '')}Z`,
    ),
  );
}

function sequence(...parts: readonly Buffer[]): Buffer {
  return der(tags.sequence, ...parts);
}

function der(tag: number, ...parts: readonly Buffer[]): Buffer {
  const value = Buffer.concat(parts);
  const { length } = value;
  const long = length < 0x1_00 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.of(tag, ...(length < 0x80 ? [length] : long)), value]);
}
