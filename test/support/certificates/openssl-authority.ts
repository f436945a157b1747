/**
 * A certificate authority that signs with the openssl program what support/test-authority.ts cannot
 * write: intermediates, extensions in openssl's syntax, and certificates of an existing authority,
 * whose key may be of any kind.
 */
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { TestAuthority, type Certificate } from '../test-authority.js';

const run = promisify(execFile);
/**
 * Makes a key and its certificate. One child runs both programs, because in a process with many
 * workers each child costs a tenth of a second. The caller gives the serial number: openssl would
 * keep it in a file, which two concurrent calls would corrupt.
 */
const sign = `
openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj "$subject" -keyout "$key" -out "$stem.csr"
exec openssl x509 -req -in "$stem.csr" -extfile "$stem.ext" -CA "$ca" -CAkey "$caKey" -set_serial "0x$serial" -days "$days" -out "$certificate"`;

export type Named = Readonly<{
  user: string;
  groups: readonly string[];
  uris?: readonly string[];
  /**
   * A section of alternative names in openssl's syntax, instead of `uris`: `DNS:amber`, `DER:0500`.
   */
  alternativeNames?: string;
  /** Validity from the present; negative makes an expired certificate. */
  validityDays?: number;
}>;

type AuthorityFiles = Readonly<{ certificateFile: string; keyFile: string }>;
/**
 * `subject` and `extensions` are in openssl's syntax. `stem` is the path, without ending, of the
 * intermediate files.
 */
type Signed = AuthorityFiles & Readonly<{ stem: string; subject: string; extensions: string; validityDays: number }>;

export class OpensslAuthority {
  readonly certificateFile: string;
  readonly keyFile: string;
  readonly #folder: string;
  #issued = 0;

  /** Uses an existing authority; writes the certificates that it issues to `folder`. */
  constructor(folder: string, { certificateFile, keyFile }: AuthorityFiles) {
    this.#folder = folder;
    this.certificateFile = certificateFile;
    this.keyFile = keyFile;
  }

  /** Makes a new authority whose files are in `folder`. */
  static create(folder: string, { name = 'strata-test-authority' } = {}): OpensslAuthority {
    return new OpensslAuthority(folder, new TestAuthority(folder, { name }));
  }

  /**
   * Makes an authority signed by this one. `extensions` is in openssl's syntax. Its files are in
   * `folder`.
   */
  async intermediate(folder: string, name: string, extensions = 'basicConstraints=critical,CA:TRUE'): Promise<OpensslAuthority> {
    const authority = new OpensslAuthority(folder, filesIn(folder));
    const { certificateFile, keyFile } = authority;
    await this.#sign({ certificateFile, keyFile, stem: join(folder, 'ca'), subject: `/CN=${name}`, extensions, validityDays: 30 });
    return authority;
  }

  /**
   * Issues a client certificate: CN is the user, each O a group, each URI a subject alternative
   * name.
   */
  async issue({ user, groups, uris = [], alternativeNames, validityDays = 30 }: Named): Promise<Certificate> {
    const stem = join(this.#folder, `client-${(this.#issued += 1)}`);
    const [keyFile, certificateFile] = [`${stem}.key`, `${stem}.crt`];
    const names = alternativeNames ?? uris.map((uri) => `URI:${uri}`).join(',');
    const extensions = `extendedKeyUsage=clientAuth${names === '' ? '' : `\nsubjectAltName=${names}`}`;
    const subject = [...groups.map((group) => `/O=${escaped(group)}`), `/CN=${escaped(user)}`].join('');
    await this.#sign({ certificateFile, keyFile, stem, subject, extensions, validityDays });

    const [certificate, key] = await Promise.all([readFile(certificateFile, 'utf8'), readFile(keyFile, 'utf8')]);
    return { certificateFile, keyFile, certificate, key };
  }

  async #sign({ certificateFile, keyFile, stem, subject, extensions, validityDays }: Signed): Promise<void> {
    await writeFile(`${stem}.ext`, `${extensions}\n`);
    const env = {
      ...process.env,
      stem,
      subject,
      ca: this.certificateFile,
      caKey: this.keyFile,
      certificate: certificateFile,
      key: keyFile,
      serial: randomBytes(8).toString('hex'),
      days: String(validityDays),
    };
    await run('sh', ['-ec', sign], { env });
  }
}

function filesIn(folder: string): AuthorityFiles {
  return { certificateFile: join(folder, 'ca.crt'), keyFile: join(folder, 'ca.key') };
}

/** Escapes the characters that openssl would read as the end of a name. */
function escaped(name: string): string {
  return name.replace(/[\\/+]/g, '\\$&');
}
