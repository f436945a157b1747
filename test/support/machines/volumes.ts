/**
 * The folders of a pod's volumes, with owners and modes as kubelet gives them to a container. With an `fsGroup`, a volume is the group's; without, it is root's,
 * and only an `emptyDir` can be written by others.
 */
import { chmod, chown, mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Mount } from './container.js';

const dataFolder = '..2026_11_30_00_00_00.000000001';

export class Volumes {
  readonly #folder: string;
  readonly #fsGroup: number | undefined;

  /** Its folders live in `folder`. */
  constructor(folder: string, { fsGroup }: Readonly<{ fsGroup?: number }> = {}) {
    this.#folder = folder;
    this.#fsGroup = fsGroup;
  }

  async emptyDir(path: string): Promise<Mount> {
    return { folder: await this.#make(path, this.#fsGroup === undefined ? 0o777 : 0o2777), path, isReadOnly: false };
  }

  /** A PersistentVolumeClaim whose disk is new. */
  async claim(path: string): Promise<Mount> {
    return { folder: await this.#make(path, this.#fsGroup === undefined ? 0o755 : 0o2775), path, isReadOnly: false };
  }

  /** A Secret or a ConfigMap: by name, what each file holds. Links lead to the files, so that all of them change at once. */
  async files(path: string, contents: Readonly<Record<string, string>>): Promise<Mount> {
    const folder = await this.#make(path, this.#fsGroup === undefined ? 0o1777 : 0o3777);
    const data = join(folder, dataFolder);
    await mkdir(data);
    await this.#own(data, this.#fsGroup === undefined ? 0o755 : 0o2755);
    await symlink(dataFolder, join(folder, '..data'));
    for (const [name, text] of Object.entries(contents)) {
      await writeFile(join(data, name), text);
      await this.#own(join(data, name), this.#fsGroup === undefined ? 0o644 : 0o440);
      await symlink(join('..data', name), join(folder, name));
    }
    return { folder, path, isReadOnly: true };
  }

  async #make(path: string, mode: number): Promise<string> {
    const folder = join(this.#folder, path.replaceAll('/', '-').slice(1));
    await mkdir(folder);
    await this.#own(folder, mode);
    return folder;
  }

  async #own(path: string, mode: number): Promise<void> {
    await chown(path, 0, this.#fsGroup ?? 0);
    await chmod(path, mode);
  }
}
