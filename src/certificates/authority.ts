/**
 * A minimal certificate authority: it signs serving and client certificates, and nothing else.
 *
 * Every key is ECDSA P-256, which Go, curl, Node and OpenSSL all accept. Serials are 126 random
 * bits, so two certificates never share one, even after an authority was lost and replaced.
 */
import 'reflect-metadata';
import { webcrypto } from 'node:crypto';
import { isIP } from 'node:net';
import * as x509 from '@peculiar/x509';
import { formatSpokenFor, type SpokenFor } from '../domain/caller.js';
import type { Clock } from '../domain/ports.js';

/** A certificate and its private key (PKCS #8), both PEM. */
export type CertificateAndKey = Readonly<{ certificatePem: string; keyPem: string }>;

type Validity = Readonly<{ validityDays: number }>;

const keyAlgorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;
const dayMs = 86_400_000;
/**
 * How long before its creation a certificate becomes valid, because the clocks of two machines
 * never agree.
 */
const clockSkewMs = 3_600_000;
const serialBytes = 16;

export class Authority {
  readonly certificatePem: string;
  readonly keyPem: string;
  readonly #certificate: x509.X509Certificate;
  readonly #key: webcrypto.CryptoKey;
  readonly #clock: Clock;

  private constructor(clock: Clock, certificate: x509.X509Certificate, key: webcrypto.CryptoKey, keyPem: string) {
    this.#clock = clock;
    this.#certificate = certificate;
    this.#key = key;
    this.certificatePem = formatPem(certificate);
    this.keyPem = keyPem;
  }

  get validUntilMs(): number {
    return this.#certificate.notAfter.getTime();
  }

  static async create({ clock }: { clock: Clock }, { name, validityDays }: { name: string } & Validity): Promise<Authority> {
    const keys = await generateKeys();
    const certificate = await x509.X509CertificateGenerator.createSelfSigned(
      {
        ...lifetime(clock, validityDays),
        serialNumber: randomSerial(),
        name: subject(name, []),
        signingAlgorithm: keyAlgorithm,
        keys,
        extensions: [
          new x509.BasicConstraintsExtension(true, 0, true),
          new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
          await x509.SubjectKeyIdentifierExtension.create(keys.publicKey, false, webcrypto),
        ],
      },
      webcrypto,
    );
    return new Authority(clock, certificate, keys.privateKey, await formatKey(keys.privateKey));
  }

  /**
   * Loads a saved authority. Throws when the certificate cannot be parsed, or the key is no P-256
   * key.
   */
  static async load({ clock }: { clock: Clock }, { certificatePem, keyPem }: CertificateAndKey): Promise<Authority> {
    const der = x509.PemConverter.decodeFirst(keyPem);
    const key = await webcrypto.subtle.importKey('pkcs8', der, keyAlgorithm, true, ['sign']);
    return new Authority(clock, new x509.X509Certificate(certificatePem), key, keyPem);
  }

  /** `names`: the DNS names or IP addresses under which clients reach the server. */
  async issueServing({ names, validityDays }: { names: readonly [string, ...string[]] } & Validity): Promise<CertificateAndKey> {
    return this.#issue(subject(names[0], []), validityDays, x509.ExtendedKeyUsage.serverAuth, [
      new x509.SubjectAlternativeNameExtension(names.map((name) => ({ type: isIP(name) === 0 ? 'dns' : 'ip', value: name }))),
    ]);
  }

  /**
   * A certificate for `user` as a member of `groups`. With the group `strata`, its bearer acts as
   * the shard, cache, reader or syncer in `speaksFor`.
   */
  async issueClient({
    user,
    groups,
    speaksFor,
    validityDays,
  }: { user: string; groups: readonly string[]; speaksFor?: SpokenFor } & Validity): Promise<CertificateAndKey> {
    const uris =
      speaksFor === undefined ? [] : [new x509.SubjectAlternativeNameExtension([{ type: 'url', value: formatSpokenFor(speaksFor) }])];
    return this.#issue(subject(user, groups), validityDays, x509.ExtendedKeyUsage.clientAuth, uris);
  }

  async #issue(
    name: x509.Name,
    validityDays: number,
    usage: x509.ExtendedKeyUsage,
    more: readonly x509.Extension[],
  ): Promise<CertificateAndKey> {
    const keys = await generateKeys();
    const certificate = await x509.X509CertificateGenerator.create(
      {
        ...lifetime(this.#clock, validityDays),
        serialNumber: randomSerial(),
        subject: name,
        issuer: this.#certificate.subjectName,
        publicKey: keys.publicKey,
        signingKey: this.#key,
        signingAlgorithm: keyAlgorithm,
        extensions: [
          new x509.BasicConstraintsExtension(false, undefined, true),
          new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
          new x509.ExtendedKeyUsageExtension([usage]),
          await x509.AuthorityKeyIdentifierExtension.create(this.#certificate, false, webcrypto),
          ...more,
        ],
      },
      webcrypto,
    );
    return { certificatePem: formatPem(certificate), keyPem: await formatKey(keys.privateKey) };
  }
}

async function generateKeys(): Promise<webcrypto.CryptoKeyPair> {
  return webcrypto.subtle.generateKey(keyAlgorithm, true, ['sign', 'verify']);
}

function lifetime(clock: Clock, validityDays: number): { notBefore: Date; notAfter: Date } {
  const now = clock.wallMs();
  return { notBefore: new Date(now - clockSkewMs), notAfter: new Date(now + validityDays * dayMs) };
}

/**
 * Values are UTF8String objects, because the library would parse a plain text as a quoted
 * expression, and 'a"b' would lose its quote.
 */
function subject(commonName: string, organizations: readonly string[]): x509.Name {
  return new x509.Name([...organizations.map((value) => ({ O: [{ utf8String: value }] })), { CN: [{ utf8String: commonName }] }]);
}

/**
 * Two bits are fixed. The first is clear, because a serial is positive (RFC 5280, 4.1.2.2). The
 * second is set, because DER allows no leading zero byte.
 */
function randomSerial(): string {
  const bytes = webcrypto.getRandomValues(new Uint8Array(serialBytes));
  bytes[0] = (bytes[0]! & 0x3f) | 0x40;
  return Buffer.from(bytes).toString('hex');
}

function formatPem(certificate: x509.X509Certificate): string {
  return `${certificate.toString('pem')}\n`;
}

async function formatKey(key: webcrypto.CryptoKey): Promise<string> {
  const der = await webcrypto.subtle.exportKey('pkcs8', key);
  return `${x509.PemConverter.encode(der, x509.PemConverter.PrivateKeyTag)}\n`;
}
