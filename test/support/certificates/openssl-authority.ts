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
const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'] as const;

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
type Signed = Readonly<{ requestFile: string; extensionsFile: string; certificateFile: string }>;

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
    const requestFile = join(folder, 'ca.csr');
    const extensionsFile = join(folder, 'ca.ext');
    await writeFile(extensionsFile, `${extensions}\n`);
    await run('openssl', ['req', ...newKey, '-subj', `/CN=${name}`, '-keyout', authority.keyFile, '-out', requestFile]);
    await this.#signForDays({ requestFile, extensionsFile, certificateFile: authority.certificateFile }, 30);
    return authority;
  }

  /** A client certificate of this authority: CN is the user, each O a group, each URI a subject alternative name. */
  async issue({ user, groups, uris = [], alternativeNames, validityDays = 30 }: Named): Promise<Certificate> {
    const stem = join(this.#folder, `client-${(this.#issued += 1)}`);
    const [keyFile, requestFile, extensionsFile, certificateFile] = [`${stem}.key`, `${stem}.csr`, `${stem}.ext`, `${stem}.crt`];
    const names = alternativeNames ?? uris.map((uri) => `URI:${uri}`).join(',');
    await writeFile(extensionsFile, `extendedKeyUsage=clientAuth\n${names === '' ? '' : `subjectAltName=${names}\n`}`);
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
    await this.#signForDays({ requestFile, extensionsFile, certificateFile }, validityDays);

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
      this.keyFile,
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
}

function filesIn(folder: string): AuthorityFiles {
  return { certificateFile: join(folder, 'ca.crt'), keyFile: join(folder, 'ca.key') };
}

/** Escapes what openssl would take for the end of a name. */
function escaped(name: string): string {
  return name.replace(/[\\/+]/g, '\\$&');
}
