/** Runs the program in this process; returns its output and its exit code. */
import { Writable } from 'node:stream';
import { systemClock } from '../../../src/clock.js';
import { runProgram } from '../../../src/program.js';

export type ProgramResult = Readonly<{ exitCode: number; stdout: string; stderr: string }>;

/** Not for `serve`: nothing would stop it. */
export async function programResult(args: readonly string[], { called = 'strata' } = {}): Promise<ProgramResult> {
  let [stdout, stderr] = ['', ''];
  const logStream = new Writable({
    write: (chunk: Buffer, _encoding, done) => {
      stderr += chunk.toString();
      done();
    },
  });
  const { exitCode } = await runProgram(
    { called, args },
    {
      print: (text) => void (stdout += text),
      printError: (text) => void (stderr += text),
      uid: 10_001,
      isTerminal: false,
      environment: {},
      clock: systemClock,
      random: Math.random,
      logStream,
      untilStopped: () => new Promise(() => {}),
      onHangUp: () => {},
      exit: (code) => {
        throw new Error(`it exits with ${code}`);
      },
    },
  );
  return { exitCode, stdout, stderr };
}
