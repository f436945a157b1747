/**
 * A certificate authority for tests, made with the openssl program, because the tests must not trust the code they test to
 * issue what it later accepts. Keys are P-256, because making them takes milliseconds.
 */
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { rmSync } from 'node:fs';
import { copyFile, mkdtemp, readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'] as const;

/** A certificate and its key, as files (for other programs) and as text (for our own clients). */
export type Certificate = Readonly<{ certificateFile: string; keyFile: string; certificate: string; key: string }>;

export type Subject = Readonly<{
  user: string;
  groups: readonly string[];
  uris?: readonly string[];
  /** A section of names instead of `uris`, as openssl's configuration spells it: `DNS:amber`, `DER:0500`. */
  alternativeNames?: string;
  /** How long it is valid from now on; negative makes an expired one. */
  validityDays?: number;
  /** The same for a certificate that runs out while a test watches. */
  validitySeconds?: number;
  /** Of the key, as openssl spells it; by default clientAuth. */
  usage?: string;
}>;

export class TestAuthority {
  readonly certificateFile: string;
  readonly #folder: string;
  readonly #keyFile: string;
  /** Of all copies of one authority. */
  readonly #made: { master?: Promise<Certificate> };
  #issued = 0;

  private constructor(folder: string, made = {}) {
    this.#folder = folder;
    this.#made = made;
    this.certificateFile = join(folder, 'ca.crt');
    this.#keyFile = join(folder, 'ca.key');
  }

  /** The authority of whatever in this process needs none of its own, copied into `folder`: openssl takes a third of the time that a server takes to start. */
  static async shared(folder: string): Promise<TestAuthority> {
    const authority = await (shared ??= makeShared());
    return TestAuthority.copy(folder, { certificateFile: authority.certificateFile, keyFile: authority.#keyFile }, authority.#made);
  }

  /** A new authority whose files live in `folder`. */
  static async create(folder: string, { name = 'strata-test-authority', validityDays = 30 } = {}): Promise<TestAuthority> {
    const authority = new TestAuthority(folder);
    await run('openssl', [
      'req',
      '-x509',
      ...newKey,
      '-days',
      String(validityDays),
      '-subj',
      `/CN=${name}`,
      '-keyout',
      authority.#keyFile,
      '-out',
      authority.certificateFile,
    ]);
    return authority;
  }

  /** Somebody else's authority, copied into `folder`. */
  static async copy(
    folder: string,
    { certificateFile, keyFile }: Readonly<{ certificateFile: string; keyFile: string }>,
    made = {},
  ): Promise<TestAuthority> {
    const authority = new TestAuthority(folder, made);
    await Promise.all([copyFile(certificateFile, authority.certificateFile), copyFile(keyFile, authority.#keyFile)]);
    return authority;
  }

  /** An authority that this one has signed, with `extensions` as openssl's configuration spells them. Its files live in `folder`. */
  async intermediate(folder: string, name: string, extensions = 'basicConstraints=critical,CA:TRUE'): Promise<TestAuthority> {
    const authority = new TestAuthority(folder);
    const requestFile = join(folder, 'ca.csr');
    const extensionsFile = join(folder, 'ca.ext');
    await writeFile(extensionsFile, `${extensions}\n`);
    await run('openssl', ['req', ...newKey, '-subj', `/CN=${name}`, '-keyout', authority.#keyFile, '-out', requestFile]);
    await this.#signForDays({ requestFile, extensionsFile, certificateFile: authority.certificateFile }, 30);
    return authority;
  }

  /** A certificate of `system:masters`, the same each time. */
  master(): Promise<Certificate> {
    return (this.#made.master ??= this.issue({ user: 'cache-client', groups: ['system:masters'] }));
  }

  /** A client certificate of this authority: CN is the user, each O a group, each URI a subject alternative name. */
  async issue({
    user,
    groups,
    uris = [],
    alternativeNames,
    validityDays = 30,
    validitySeconds,
    usage = 'clientAuth',
  }: Subject): Promise<Certificate> {
    const stem = join(this.#folder, `client-${(this.#issued += 1)}`);
    const [keyFile, requestFile, extensionsFile, certificateFile] = [`${stem}.key`, `${stem}.csr`, `${stem}.ext`, `${stem}.crt`];
    const names = alternativeNames ?? uris.map((uri) => `URI:${uri}`).join(',');
    await writeFile(extensionsFile, `extendedKeyUsage=${usage}\n${names === '' ? '' : `subjectAltName=${names}\n`}`);
    await run('openssl', [
      'req',
      ...newKey,
      '-subj',
      [...groups.map((group) => `/O=${escaped(group)}`), `/CN=${escaped(user)}`].join(''),
      '-keyout',
      keyFile,
      '-out',
      requestFile,
    ]);
    await (validitySeconds === undefined
      ? this.#signForDays({ requestFile, extensionsFile, certificateFile }, validityDays)
      : this.#signUntil({ requestFile, extensionsFile, certificateFile }, new Date(Date.now() + validitySeconds * 1000)));

    const [certificate, key] = await Promise.all([readFile(certificateFile, 'utf8'), readFile(keyFile, 'utf8')]);
    return { certificateFile, keyFile, certificate, key };
  }

  async #signForDays(files: Signed, validityDays: number): Promise<void> {
    await run('openssl', [
      'x509',
      '-req',
      '-in',
      files.requestFile,
      '-CA',
      this.certificateFile,
      '-CAkey',
      this.#keyFile,
      // Serial numbers of our own: openssl keeps its last one in a file, which two calls at a time would tear.
      '-set_serial',
      `0x${randomBytes(8).toString('hex')}`,
      '-days',
      String(validityDays),
      '-extfile',
      files.extensionsFile,
      '-out',
      files.certificateFile,
    ]);
  }

  /** `openssl x509` counts in days only; `openssl ca` takes a time, and needs a folder with a list of what it issued. */
  async #signUntil(files: Signed, notAfter: Date): Promise<void> {
    const folder = await mkdtemp(join(this.#folder, 'issued-'));
    const configFile = join(folder, 'ca.cnf');
    await Promise.all([
      writeFile(join(folder, 'index.txt'), ''),
      writeFile(
        configFile,
        `[ca]\ndefault_ca=one\n[one]\nnew_certs_dir=${folder}\ndatabase=${folder}/index.txt\nrand_serial=yes\ndefault_md=sha256\npolicy=any\npreserve=yes\n[any]\ncommonName=supplied\norganizationName=optional\n`,
      ),
    ]);
    await run('openssl', [
      'ca',
      '-batch',
      '-notext',
      '-config',
      configFile,
      '-cert',
      this.certificateFile,
      '-keyfile',
      this.#keyFile,
      '-enddate',
      `${notAfter.toISOString().replace(/[-:T]|\..*/g, '')}Z`,
      '-in',
      files.requestFile,
      '-extfile',
      files.extensionsFile,
      '-out',
      files.certificateFile,
    ]);
  }
}

let shared: Promise<TestAuthority> | undefined;

async function makeShared(): Promise<TestAuthority> {
  const folder = await mkdtemp(join(tmpdir(), 'strata-authority-'));
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  const authority = await TestAuthority.create(folder);
  await authority.master();
  return authority;
}

type Signed = Readonly<{ requestFile: string; extensionsFile: string; certificateFile: string }>;

/** Escapes what openssl would take for the end of a name. */
function escaped(name: string): string {
  return name.replace(/[\\/+]/g, '\\$&');
}
