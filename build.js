/**
 * `npm run build`: compiles into a folder beside build/, then exchanges the two by rename.
 *
 *   build-PID/  ◀─ tsc       fails ─▶ removed; build/ stays as it was
 *       │
 *       └─ rename ─▶ build/  ─▶ build-PID-old/ ─▶ removed
 *
 * What runs from build/ goes on with what it has loaded. What it loads later comes from the new build: of a server that is the
 * program of the thread for heavy work (src/heavy/), which ends when it has nothing to do. For the moment between the two renames there is no
 * build/: a process that starts just then fails. So a server that must not notice runs from an installed package.
 */
import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

process.chdir(fileURLToPath(new URL('.', import.meta.url)));
const fresh = `build-${process.pid}`;
const old = `${fresh}-old`;
const remove = (folder) => rmSync(folder, { recursive: true, force: true });

removeLeftovers();
const { status } = spawnSync(process.execPath, [join('node_modules', 'typescript', 'bin', 'tsc'), '--outDir', fresh], { stdio: 'inherit' });
if (status === 0) {
  chmodSync(join(fresh, 'src', 'main.js'), 0o755);
  exchange();
} else {
  remove(fresh);
  process.exitCode = status ?? 1;
}

function exchange() {
  if (existsSync('build')) renameSync('build', old);
  renameSync(fresh, 'build');
  remove(old);
}

/** Of builds that were killed; those that run still are somebody else's. */
function removeLeftovers() {
  for (const folder of readdirSync('.')) {
    const [, pid] = /^build-(\d+)(?:-old)?$/.exec(folder) ?? [];
    if (pid !== undefined && (Number(pid) === process.pid || !isRunning(Number(pid)))) remove(folder);
  }
}

function isRunning(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === 'EPERM';
  }
}
