/**
 * `npm run test:load`: runs AVA with the given arguments beside two processes that keep the
 * processor busy. A test that fails only here measures the machine.
 */
import { once } from 'node:events';
import { avaProgram } from './ava-program.js';
import { spawn } from './children.js';

const busyProcesses = 2;

const busy = Array.from({ length: busyProcesses }, () => spawn(process.execPath, ['-e', 'for (;;);'], { stdio: 'ignore' }));
const run = spawn(process.execPath, [avaProgram, ...process.argv.slice(2)], { stdio: 'inherit' });
const [code] = (await once(run, 'exit')) as [number | null];
for (const child of busy) child.kill('SIGKILL');
process.exitCode = code ?? 1;
