/**
 * The folders of a pod's volumes, with owners and modes as kubelet gives them to a container. With an `fsGroup`, a volume is the group's; without, it is root's,
 * and only an `emptyDir` can be written by others.
 */
import { chmod, chown, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { writeVolume } from '../kubelet-volume.js';
import type { Mount } from './container.js';

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

  /** A Secret or a ConfigMap: by name, what each file holds. */
  async files(path: string, contents: Readonly<Record<string, string>>): Promise<Mount> {
    const folder = await this.#make(path, 0o755);
    writeVolume(folder, contents, this.#fsGroup === undefined ? {} : { mode: 0o440, group: this.#fsGroup });
    return { folder, path, isReadOnly: true };
  }

  async #make(path: string, mode: number): Promise<string> {
    const folder = join(this.#folder, path.replaceAll('/', '-').slice(1));
    await mkdir(folder);
    await chown(folder, 0, this.#fsGroup ?? 0);
    await chmod(folder, mode);
    return folder;
  }
}
