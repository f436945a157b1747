/**
 * `npm run build` (build.js) in a project of two files and a page. Processes that run from build/
 * must survive it, and a failed build must leave build/ as it was.
 */
import { once } from 'node:events';
import { copyFile, mkdir, mkdtemp, readFile, readdir, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline/promises';
import type { ExecutionContext } from 'ava';
import { test } from '../../support/test.js';
import { runProgram, type Ran } from '../installed.js';
import { projectFile } from '../../support/project.js';
import { spawn } from '../../support/children.js';

const compilerOptions = { target: 'es2023', lib: ['es2023'], module: 'nodenext', types: ['node'], rootDir: '.', skipLibCheck: true };
const page = join('src', 'console', 'page');
const buildMsMax = 30_000;

/**
 * Prints its build. For each line of input it prints its build again, and that of the module it
 * then loads.
 */
const main = `
  import { createInterface } from 'node:readline';
  export const release: string = 'RELEASE';
  console.log(release);
  for await (const _ of createInterface(process.stdin)) console.log(release, (await import('./later.js')).release);
`;

test('a process that runs from build/ survives a new build, and loads later modules from the new one', async (t) => {
  const project = await aProject(t);
  await project.write('first');
  t.like(await project.build(), { code: 0 });
  const running = spawn(process.execPath, [join(project.folder, 'build/src/main.js')], { stdio: ['pipe', 'pipe', 'inherit'] });
  t.teardown(() => running.kill('SIGKILL'));
  const said = createInterface(running.stdout)[Symbol.asyncIterator]();
  t.is((await said.next()).value, 'first');

  await project.write('second');
  t.like(await project.build(), { code: 0 });

  running.stdin.write('\n');
  t.is((await said.next()).value, 'first second');
  running.stdin.end();
  t.deepEqual(await once(running, 'exit'), [0, null]);
});

test('a build that fails reports why and leaves the previous build unchanged', async (t) => {
  const project = await aProject(t);
  await project.write('first');
  await project.build();

  await writeFile(join(project.folder, 'src/later.ts'), 'export const release: number = "second";');
  const { code, stdout } = await project.build();

  t.not(code, 0);
  t.regex(stdout, /later\.ts.* TS2322/);
  t.regex(await readFile(join(project.folder, 'build/src/later.js'), 'utf8'), /first/);
  t.deepEqual(await project.builds(), ['build']);
});

test('a build removes leftovers of a killed build and files without a source, and makes its program executable', async (t) => {
  const project = await aProject(t);
  await project.write('first');
  await mkdir(join(project.folder, 'build-999999999/src'), { recursive: true });
  await mkdir(join(project.folder, 'build/src'), { recursive: true });
  await writeFile(join(project.folder, 'build/src/gone.js'), '');

  await project.build();

  t.deepEqual(await project.builds(), ['build']);
  t.deepEqual((await readdir(join(project.folder, 'build/src'))).toSorted(), ['console', 'later.js', 'main.js']);
  t.deepEqual((await readdir(join(project.folder, 'build', page))).toSorted(), ['console.css', 'main.js']);
  t.is((await stat(join(project.folder, 'build/src/main.js'))).mode & 0o111, 0o111);
});

class Project {
  readonly folder: string;

  constructor(folder: string) {
    this.folder = folder;
  }

  async write(release: string): Promise<void> {
    await writeFile(join(this.folder, 'src/main.ts'), main.replace('RELEASE', release));
    await writeFile(join(this.folder, 'src/later.ts'), `export const release: string = '${release}';`);
  }

  build(): Promise<Ran> {
    return runProgram(process.execPath, ['build.js'], { cwd: this.folder, timeoutMs: buildMsMax });
  }

  /** The folders whose names begin with build. */
  async builds(): Promise<readonly string[]> {
    const entries = await readdir(this.folder, { withFileTypes: true });
    return entries.filter((entry) => entry.isDirectory() && entry.name.startsWith('build')).map(({ name }) => name);
  }
}

async function aProject(t: ExecutionContext): Promise<Project> {
  const folder = await mkdtemp(join(tmpdir(), 'strata-build-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  await mkdir(join(folder, page), { recursive: true });
  await copyFile(projectFile('build.js'), join(folder, 'build.js'));
  await symlink(projectFile('node_modules'), join(folder, 'node_modules'));
  await writeFile(join(folder, 'package.json'), JSON.stringify({ type: 'module' }));
  await writeFile(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['src'], exclude: [page] }));
  const ofPage = {
    extends: '../../../tsconfig.json',
    compilerOptions: { lib: ['es2023', 'dom'], rootDir: '../../..' },
    include: ['.'],
    exclude: [],
  };
  await writeFile(join(folder, page, 'tsconfig.json'), JSON.stringify(ofPage));
  await writeFile(join(folder, page, 'main.ts'), 'document.title = "of a page";');
  await writeFile(join(folder, page, 'console.css'), '');
  return new Project(folder);
}
