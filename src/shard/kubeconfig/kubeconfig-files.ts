/**
 * A kubeconfig and the files that it names, read again before each request. A renewal of a
 * certificate or token replaces a file, or rewrites the kubeconfig. A file watch would miss a
 * change of a Kubernetes secret, which swaps a symbolic link. A read takes a fraction of a
 * millisecond, and requests are few.
 *
 * F1 Unusable content is ignored: a half-written file, or a certificate with another key. Each
 *    problem is logged once.
 * F2 A kubeconfig that leads to another shard is ignored: the agent would push that shard's objects
 *    as this shard's.
 */
import { certificatesIn, type UsedCertificates } from '../../certificates/certificate-expiry.js';
import { checkAuthorities, checkPair } from '../../certificates/pair-files.js';
import type { Log } from '../../diagnostics/log.js';
import { CacheError } from '../../domain/errors.js';
import { readRegularFile } from '../../regular-file.js';
import { formatBearer } from './exec-credential.js';
import { parseKubeconfigEntry, type KubeconfigEntry, type KubeconfigOptions, type PemSource } from './kubeconfig-entry.js';

export type KubeconfigContent = Readonly<{
  text: string;
  entry: KubeconfigEntry;
  ca: string | undefined;
  certificate: string | undefined;
  key: string | undefined;
  /** The Authorization header. */
  authorization: string | undefined;
}>;

export class KubeconfigFiles {
  readonly #log: Log;
  readonly #options: KubeconfigOptions;
  #content: KubeconfigContent;
  /** Why the last reload was ignored; '' if it was not. */
  #problem = '';

  private constructor(log: Log, options: KubeconfigOptions, content: KubeconfigContent) {
    this.#log = log;
    // The context stays the one from the start, because another user of the file may switch its
    // current context.
    this.#options = { ...options, context: content.entry.context };
    this.#content = content;
  }

  /** Throws CacheError with what is wrong and where. */
  static open({ log }: { log: Log }, options: KubeconfigOptions): KubeconfigFiles {
    return new KubeconfigFiles(log, options, readKubeconfig(options));
  }

  /** The content of the last successful read. */
  get content(): KubeconfigContent {
    return this.#content;
  }

  /** The certificates that the agent presents to the shard. */
  certificates(): UsedCertificates {
    const { entry, certificate } = this.#content;
    return certificate === undefined ? [] : certificatesIn('shard', entry.certificate?.name ?? this.#options.path, certificate);
  }

  /**
   * Reads the files again. Returns the new content, or the former content if the new one is
   * unusable.
   */
  reload(): KubeconfigContent {
    const file = this.#options.path;
    try {
      const next = readKubeconfig(this.#options, this.#content);
      if (next !== this.#content) this.#log.info('kubeconfig.reloaded', { file });
      this.#content = next;
      this.#problem = '';
    } catch (error) {
      if (!(error instanceof CacheError)) throw error;
      if (error.message !== this.#problem) this.#log.warn('kubeconfig.reload-failed', { file, error });
      this.#problem = error.message;
    }
    return this.#content;
  }
}

/** Reads the files once. Returns `last` itself if nothing has changed. Throws CacheError. */
export function readKubeconfig(options: KubeconfigOptions, last?: KubeconfigContent): KubeconfigContent {
  const text = readText(options.path);
  const entry = text === last?.text ? last.entry : parseKubeconfigEntry(text, options);
  if (last !== undefined && addressOf(entry) !== addressOf(last.entry))
    throw new CacheError(`${options.path}: the context ${entry.context} leads to another server now; start this process again to use it`);
  const [ca, certificate, key] = [readPem(entry.ca), readPem(entry.certificate), readPem(entry.key)];
  const authorization = readToken(entry, options.path);
  const isSame = ca === last?.ca && certificate === last?.certificate && key === last?.key && authorization === last?.authorization;
  if (last !== undefined && isSame && text === last.text) return last;
  if (entry.ca !== undefined && ca !== undefined) checkAuthorities(entry.ca.name, ca);
  if (entry.certificate !== undefined && certificate !== undefined && entry.key !== undefined && key !== undefined)
    checkPair({ cert: certificate, key }, { certFile: entry.certificate.name, keyFile: entry.key.name });
  return { text, entry, ca, certificate, key, authorization };
}

function addressOf({ server, serverName, insecure }: KubeconfigEntry): string {
  return JSON.stringify([server, serverName, insecure]);
}

function readPem(source: PemSource | undefined): string | undefined {
  if (source === undefined) return undefined;
  return 'text' in source ? source.text : readText(source.file);
}

function readToken({ token, tokenFile }: KubeconfigEntry, path: string): string | undefined {
  if (tokenFile !== undefined) return formatBearer(readText(tokenFile).trim(), tokenFile);
  return token === undefined ? undefined : formatBearer(token, `${path}: the token`);
}

function readText(file: string): string {
  try {
    return readRegularFile(file);
  } catch (cause) {
    throw new CacheError(`cannot read ${file}`, { cause });
  }
}
