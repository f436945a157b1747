/**
 * A certificate authority for which the openssl program signs what support/test-authority.ts cannot write: intermediates, extensions as openssl's
 * configuration spells them, and certificates of an authority that somebody else made, whose keys may be of any kind.
 */
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { TestAuthority, type Certificate } from '../test-authority.js';

const run = promisify(execFile);
/**
 * A new key, and a certificate of it: one child for two programs, because a child costs a process with many workers a tenth of a second.
 * Serial numbers are ours: openssl keeps its last one in a file, which two calls at a time would tear.
 */
const sign = `
openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj "$subject" -keyout "$key" -out "$stem.csr"
exec openssl x509 -req -in "$stem.csr" -extfile "$stem.ext" -CA "$ca" -CAkey "$caKey" -set_serial "0x$serial" -days "$days" -out "$certificate"`;

export type Named = Readonly<{
  user: string;
  groups: readonly string[];
  uris?: readonly string[];
  /** A section of names instead of `uris`, as openssl's configuration spells it: `DNS:amber`, `DER:0500`. */
  alternativeNames?: string;
  /** How long it is valid from now on; negative makes an expired one. */
  validityDays?: number;
}>;

type AuthorityFiles = Readonly<{ certificateFile: string; keyFile: string }>;
/** `subject` and `extensions`: as openssl spells them. `stem`: of the files that it needs on the way. */
type Signed = AuthorityFiles & Readonly<{ stem: string; subject: string; extensions: string; validityDays: number }>;

export class OpensslAuthority {
  readonly certificateFile: string;
  readonly keyFile: string;
  readonly #folder: string;
  #issued = 0;

  /** An authority that there is; what it issues is written to `folder`. */
  constructor(folder: string, { certificateFile, keyFile }: AuthorityFiles) {
    this.#folder = folder;
    this.certificateFile = certificateFile;
    this.keyFile = keyFile;
  }

  /** A new authority whose files live in `folder`. */
  static create(folder: string, { name = 'strata-test-authority' } = {}): OpensslAuthority {
    return new OpensslAuthority(folder, new TestAuthority(folder, { name }));
  }

  /** An authority that this one has signed, with `extensions` as openssl's configuration spells them. Its files live in `folder`. */
  async intermediate(folder: string, name: string, extensions = 'basicConstraints=critical,CA:TRUE'): Promise<OpensslAuthority> {
    const authority = new OpensslAuthority(folder, filesIn(folder));
    const { certificateFile, keyFile } = authority;
    await this.#sign({ certificateFile, keyFile, stem: join(folder, 'ca'), subject: `/CN=${name}`, extensions, validityDays: 30 });
    return authority;
  }

  /** A client certificate of this authority: CN is the user, each O a group, each URI a subject alternative name. */
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

/** Escapes what openssl would take for the end of a name. */
function escaped(name: string): string {
  return name.replace(/[\\/+]/g, '\\$&');
}
