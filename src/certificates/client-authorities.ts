/**
 * The authorities whose client certificates are trusted (`--client-ca-file`, and
 * `--requestheader-client-ca-file` for authenticating proxies). They are read at the start and
 * again while the server runs.
 *
 *   start ─▶ every PEM block a CA certificate, one of them a root? ─no─▶ the server does not start
 *              │yes
 *              └▶ polled: new and valid ⇒ trusted from then on; invalid ⇒ logged, the old ones stay
 *
 * CA1 OpenSSL decides in the handshake whom to trust. `vouchesFor` checks connections that were
 *    trusted before the file changed. It only withdraws trust: it accepts no certificate that a
 *    handshake would refuse. It distrusts the parts that it cannot check: an unknown critical
 *    extension, or intermediates that Node does not expose (after a resumed session; on Node 24
 *    always). The client then reconnects, and the new handshake checks the whole chain.
 * CA2 A chain ends at a self-signed authority of the file, as in OpenSSL, and has at most
 *    `chainMax` certificates.
 */
import { X509Certificate } from 'node:crypto';
import type { Log } from '../diagnostics/log.js';
import { CacheError } from '../domain/errors.js';
import type { Clock } from '../domain/ports.js';
import type { Reloadable } from '../domain/base/reloaded.js';
import { extensionIds, extensionsOf, fieldsOf, pathLengthOf } from './certificate-fields.js';
import { ofOption, readText } from './pair-files.js';
import { pollFiles } from './polled-files.js';

export type ClientAuthoritiesParts = Readonly<{ clock: Clock; log: Log }>;

/** No rotation needs so many. */
const certificatesMax = 256;
const chainMax = 10;
/** The critical extensions that are checked here; `checkIssued` checks keyUsage. */
const checkedExtensions: ReadonlySet<string> = new Set([extensionIds.basicConstraints, extensionIds.keyUsage]);
const clientAuthentication = '1.3.6.1.5.5.7.3.2';
const blockPattern = /-----BEGIN ([^\r\n-]*)-----[\s\S]*?(?:-----END \1-----|(?=-----BEGIN )|$)/g;

/**
 * `issuersBelowMax`: how many authorities a chain may have between this one and a leaf; undefined
 * if that cannot be determined.
 */
type Authority = Readonly<{ certificate: X509Certificate; isRoot: boolean; issuersBelowMax: number | undefined }>;

export class ClientAuthorities {
  readonly file: string;
  readonly #parts: ClientAuthoritiesParts;
  #pem: string;
  #authorities: readonly Authority[];

  private constructor(parts: ClientAuthoritiesParts, file: string, flag: string | undefined) {
    this.#parts = parts;
    this.file = file;
    this.#pem = readText(file, 'client CA file', flag);
    this.#authorities = ofOption(flag, () => parseAuthorities(file, this.#pem));
  }

  /**
   * `flag`: the option that names the file, without dashes. Throws CacheError if the file cannot be
   * read or its content is not valid.
   */
  static open(parts: ClientAuthoritiesParts, file: string, flag?: string): ClientAuthorities {
    return new ClientAuthorities(parts, file, flag);
  }

  get pem(): string {
    return this.#pem;
  }

  /** Whether a peer with this certificate, and the intermediates that it sent, is trusted now. */
  vouchesFor(certificate: X509Certificate): boolean {
    const nowMs = this.#parts.clock.wallMs();
    // Try each intermediate once: n of them that all sign each other would form n! chains.
    const untried = new Set(intermediatesOf(certificate));
    const isVouched = (signed: X509Certificate, issuersBelow: number): boolean => {
      if (!isInForce(signed, nowMs)) return false;
      for (const { certificate: issuer, isRoot, issuersBelowMax = -1 } of this.#authorities) {
        if (issuersBelow > issuersBelowMax || !isSignedBy(signed, issuer)) continue;
        if (isRoot ? isInForce(issuer, nowMs) : issuersBelow < chainMax && isVouched(issuer, issuersBelow + 1)) return true;
      }
      for (const issuer of untried) {
        if (!isSignedBy(signed, issuer)) continue;
        untried.delete(issuer);
        if (issuersBelow <= (issuersBelowMaxOf(issuer) ?? -1) && isVouched(issuer, issuersBelow + 1)) return true;
      }
      return false;
    };
    return isForClients(certificate) && isVouched(certificate, 0);
  }

  /** Calls `changed` once other authorities are trusted. If `changed` throws, the old ones stay. */
  watch({ filesPollMs, name = 'client-ca' }: Readonly<{ filesPollMs: number; name?: string }>, changed: () => void): Reloadable {
    const events = { reloaded: `${name}.reloaded`, failed: `${name}.reload-failed` };
    const take = (): boolean => {
      const pem = readText(this.file, 'client CA file');
      if (pem === this.#pem) return false;
      const before = { authorities: this.#authorities, pem: this.#pem };
      this.#authorities = parseAuthorities(this.file, pem);
      this.#pem = pem;
      try {
        changed();
      } catch (error) {
        this.#authorities = before.authorities;
        this.#pem = before.pem;
        throw error;
      }
      return true;
    };
    return pollFiles(this.#parts, { events, file: this.file, take }, filesPollMs);
  }
}

/** Throws a CacheError that names the block. */
function parseAuthorities(file: string, pem: string): readonly Authority[] {
  const blocks = [...pem.matchAll(blockPattern)];
  if (blocks.length === 0) throw new CacheError(`the client CA file ${file} holds no certificate`);
  if (blocks.length > certificatesMax)
    throw new CacheError(`the client CA file ${file} holds ${blocks.length} certificates; at most ${certificatesMax} are allowed`);
  const authorities = blocks.map(([block, label = ''], index) => {
    const where = `block ${index + 1} of the client CA file ${file}`;
    if (label !== 'CERTIFICATE') throw new CacheError(`${where} is not a certificate but ${JSON.stringify(label)}`);
    const certificate = parseBlock(block, where);
    if (!certificate.ca) throw new CacheError(`${where} is not the certificate of a CA: ${nameOf(certificate)}`);
    return { certificate, isRoot: isSignedBy(certificate, certificate), issuersBelowMax: issuersBelowMaxOf(certificate) };
  });
  if (!authorities.some(({ isRoot }) => isRoot))
    throw new CacheError(`the client CA file ${file} holds no self-signed CA, at which every chain must end; add the root`);
  return authorities;
}

function parseBlock(block: string, where: string): X509Certificate {
  try {
    return new X509Certificate(block);
  } catch (cause) {
    throw new CacheError(`${where} cannot be read as a certificate`, { cause });
  }
}

function nameOf({ subject }: X509Certificate): string {
  return subject.replaceAll('\n', ', ');
}

function intermediatesOf(certificate: X509Certificate): readonly X509Certificate[] {
  const chain: X509Certificate[] = [];
  for (let next = certificate.issuerCertificate; next !== undefined && chain.length < chainMax; next = next.issuerCertificate) {
    // In Node a self-signed certificate is its own issuer.
    if (chain.some(({ fingerprint256 }) => fingerprint256 === next?.fingerprint256)) break;
    chain.push(next);
  }
  return chain;
}

/**
 * Undefined for a certificate that is no CA's, or that has a critical extension that is not checked
 * here.
 */
function issuersBelowMaxOf(certificate: X509Certificate): number | undefined {
  if (!certificate.ca) return undefined;
  try {
    const extensions = extensionsOf(fieldsOf(certificate));
    if (extensions.some(({ isCritical, id }) => isCritical && !checkedExtensions.has(id))) return undefined;
    const constraints = extensions.find(({ id }) => id === extensionIds.basicConstraints);
    return constraints === undefined ? Infinity : pathLengthOf(constraints.value);
  } catch {
    return undefined;
  }
}

/** False if the key is of an unknown kind. */
function isSignedBy(certificate: X509Certificate, issuer: X509Certificate): boolean {
  try {
    return certificate.checkIssued(issuer) && certificate.verify(issuer.publicKey);
  } catch {
    return false;
  }
}

/** Checks extended key usage, if the certificate has it. */
function isForClients({ keyUsage }: X509Certificate): boolean {
  return keyUsage === undefined || keyUsage.includes(clientAuthentication);
}

function isInForce({ validFrom, validTo }: X509Certificate, nowMs: number): boolean {
  return Date.parse(validFrom) <= nowMs && nowMs <= Date.parse(validTo);
}
