/**
 * The folders of a pod's volumes, with the owners and modes that kubelet gives them. With an
 * `fsGroup`, that group owns a volume. Without one, root owns it, and other users can write only to
 * an `emptyDir`.
 */
import { chmod, chown, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { writeVolume } from '../kubelet-volume.js';
import type { Mount } from './container.js';

export class Volumes {
  readonly #folder: string;
  readonly #fsGroup: number | undefined;

  /** Keeps the volumes in `folder`. */
  constructor(folder: string, { fsGroup }: Readonly<{ fsGroup?: number }> = {}) {
    this.#folder = folder;
    this.#fsGroup = fsGroup;
  }

  async emptyDir(path: string): Promise<Mount> {
    return { folder: await this.#make(path, this.#fsGroup === undefined ? 0o777 : 0o2777), path, isReadOnly: false };
  }

  /** A PersistentVolumeClaim with an empty disk. */
  async claim(path: string): Promise<Mount> {
    return { folder: await this.#make(path, this.#fsGroup === undefined ? 0o755 : 0o2775), path, isReadOnly: false };
  }

  /** A Secret or a ConfigMap: the content of each file, by name. */
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
