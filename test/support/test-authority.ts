/**
 * A certificate authority for tests, made with the openssl program: the tests must not trust the code they test to
 * issue what it later accepts. Keys are P-256, because making them takes milliseconds.
 */
import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'] as const;

/** A certificate and its key, as files (for other programs) and as text (for our own clients). */
export type Certificate = Readonly<{ certificateFile: string; keyFile: string; certificate: string; key: string }>;

export type Subject = Readonly<{ user: string; groups: readonly string[]; uris?: readonly string[] }>;

export class TestAuthority {
  readonly certificateFile: string;
  readonly #folder: string;
  readonly #keyFile: string;
  #issued = 0;

  private constructor(folder: string) {
    this.#folder = folder;
    this.certificateFile = join(folder, 'ca.crt');
    this.#keyFile = join(folder, 'ca.key');
  }

  /** A new authority whose files live in `folder`. */
  static async create(folder: string): Promise<TestAuthority> {
    const authority = new TestAuthority(folder);
    await run('openssl', [
      'req',
      '-x509',
      ...newKey,
      '-days',
      '30',
      '-subj',
      '/CN=strata-test-authority',
      '-keyout',
      authority.#keyFile,
      '-out',
      authority.certificateFile,
    ]);
    return authority;
  }

  /** A client certificate of this authority: CN is the user, each O a group, each URI a subject alternative name. */
  async issue({ user, groups, uris = [] }: Subject): Promise<Certificate> {
    const stem = join(this.#folder, `client-${(this.#issued += 1)}`);
    const [keyFile, requestFile, extensionsFile, certificateFile] = [`${stem}.key`, `${stem}.csr`, `${stem}.ext`, `${stem}.crt`];
    const names = uris.length === 0 ? '' : `subjectAltName=${uris.map((uri) => `URI:${uri}`).join(',')}\n`;
    await writeFile(extensionsFile, `extendedKeyUsage=clientAuth\n${names}`);
    await run('openssl', [
      'req',
      ...newKey,
      '-subj',
      `${groups.map((group) => `/O=${group}`).join('')}/CN=${user}`,
      '-keyout',
      keyFile,
      '-out',
      requestFile,
    ]);
    await run('openssl', [
      'x509',
      '-req',
      '-in',
      requestFile,
      '-CA',
      this.certificateFile,
      '-CAkey',
      this.#keyFile,
      '-CAcreateserial',
      '-days',
      '30',
      '-extfile',
      extensionsFile,
      '-out',
      certificateFile,
    ]);

    const [certificate, key] = await Promise.all([readFile(certificateFile, 'utf8'), readFile(keyFile, 'utf8')]);
    return { certificateFile, keyFile, certificate, key };
  }
}
