/**
 * Writes and replaces a volume of a ConfigMap or a Secret as kubelet does (k8s.io/kubernetes,
 * pkg/volume/util/atomic_writer.go): readers see either all of the former files or all of the new
 * ones.
 *
 *   strata.yaml ──▶ ..data/strata.yaml   ..data ──▶ ..2026_11_30 (renamed over the former link)
 */
import { chmodSync, chownSync, existsSync, mkdirSync, readlinkSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

export type VolumeFiles = Readonly<Record<string, string>>;

/** `group`: the fsGroup of the pod; only root can give files to it. */
export type VolumeOwner = Readonly<{ mode?: number; group?: number | undefined }>;

let versions = 0;

/** Writes the files, and replaces those that are there. */
export function writeVolume(folder: string, files: VolumeFiles, { mode = 0o644, group }: VolumeOwner = {}): void {
  versions += 1;
  const version = `..version_${versions}`;
  const own = (path: string, of: number): void => {
    chmodSync(path, of);
    if (group !== undefined) chownSync(path, 0, group);
  };
  mkdirSync(join(folder, version), { recursive: true });
  own(folder, 0o755);
  own(join(folder, version), 0o755);
  for (const [name, text] of Object.entries(files)) {
    writeFileSync(join(folder, version, name), text);
    own(join(folder, version, name), mode);
  }
  const data = join(folder, '..data');
  const former = existsSync(data) ? readlinkSync(data) : undefined;
  symlinkSync(version, join(folder, '..data_tmp'));
  renameSync(join(folder, '..data_tmp'), data);
  for (const name of Object.keys(files)) if (!existsSync(join(folder, name))) symlinkSync(join('..data', name), join(folder, name));
  if (former !== undefined) rmSync(join(folder, former), { recursive: true });
}
