/** `npm run test:load`: AVA with the arguments given, beside two processes that never rest. A test that fails here alone measures the machine. */
import { once } from 'node:events';
import { avaProgram } from './ava-program.js';
import { spawn } from './children.js';

const busyProcesses = 2;

const busy = Array.from({ length: busyProcesses }, () => spawn(process.execPath, ['-e', 'for (;;);'], { stdio: 'ignore' }));
const run = spawn(process.execPath, [avaProgram, ...process.argv.slice(2)], { stdio: 'inherit' });
const [code] = (await once(run, 'exit')) as [number | null];
for (const child of busy) child.kill('SIGKILL');
process.exitCode = code ?? 1;
