/**
 * `npm run build`: compiles into a folder beside build/, then exchanges the two by rename.
 *
 *   build-PID/  ◀─ tsc       fails ─▶ removed; build/ stays as it was
 *       │
 *       └─ rename ─▶ build/  ─▶ build-PID-old/ ─▶ removed
 *
 * A program that runs from build/ keeps what it has loaded, and loads the rest from the new build.
 * A server loads only the program of the thread for heavy work later (src/heavy/), because that
 * thread ends when it is idle. Between the two renames there is no build/, and a process that
 * starts then fails. So a server that must not notice runs from an installed package.
 */
import { spawnSync } from 'node:child_process';
import { chmodSync, copyFileSync, existsSync, readFileSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

process.chdir(fileURLToPath(new URL('.', import.meta.url)));
const fresh = `build-${process.pid}`;
const old = `${fresh}-old`;
/**
 * The start of the command. The shell reads the second line as a call of node; JavaScript reads it
 * as a string and a comment. The option keeps V8 from growing its young generation to 48 MiB, where
 * garbage of many hostile clients would wait for collection. BusyBox cannot start a script with an
 * option behind `env -S`, and no process can set this option for itself.
 */
const launcher = `#!/bin/sh
':' //; exec node --max-semi-space-size=4 "$0" "$@"
`;
const remove = (folder) => rmSync(folder, { recursive: true, force: true });

removeLeftovers();
/** The server, and the page of its console, whose code knows a browser but not Node. */
const projects = ['.', join('src', 'console', 'page')];
const tsc = join('node_modules', 'typescript', 'bin', 'tsc');
const compile = (project) => spawnSync(process.execPath, [tsc, '--project', project, '--outDir', fresh], { stdio: 'inherit' }).status === 0;
if (projects.every(compile)) {
  copyFileSync(join('src', 'console', 'page', 'console.css'), join(fresh, 'src', 'console', 'page', 'console.css'));
  const main = join(fresh, 'src', 'main.js');
  writeFileSync(main, launcher + readFileSync(main, 'utf8').replace(/^#!.*\n/, ''));
  chmodSync(main, 0o755);
  exchange();
} else {
  remove(fresh);
  process.exitCode = 1;
}

function exchange() {
  if (existsSync('build')) renameSync('build', old);
  renameSync(fresh, 'build');
  remove(old);
}

/**
 * Removes the folders of builds that were killed. A folder whose process still runs belongs to
 * another build.
 */
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
