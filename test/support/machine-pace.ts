/**
 * Measures how slow this machine is at present. Bounds on processor time are set for a machine on
 * which the reference work takes `referenceMs`. On a slower or busier machine the measured work
 * takes longer, and so does the reference.
 */

/**
 * Processor time of `reference`, in milliseconds, on the idle machine for which the bounds are set.
 */
const referenceMs = 30;
/** On a slower machine than this, a bound would prove nothing. */
const slowestPace = 3;
const runs = 6;

const bytes = new Uint8Array(4_000_000).map((_, index) => (index * 31) & 0xff);
const table = new Uint16Array(256).map((_, byte) => byte ^ 0x5a);
const text = `[${'{"a":1,"b":[true,null,"x"]},'.repeat(40_000)}1]`;

/** Resembles a server's work on a large body: it reads each byte, and parses. */
function reference(): number {
  let sum = 0;
  for (let pass = 0; pass < 4; pass += 1) for (let at = 0; at < bytes.length; at += 1) sum = (sum * 3 + table[bytes[at]!]!) | 0;
  return sum + (JSON.parse(text) as unknown[]).length;
}

function referenceWorkedMs(): number {
  const before = process.cpuUsage();
  reference();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

/**
 * How many times as long this machine takes as the reference machine: from 1 to 3. The shortest of
 * several runs counts, as it does in the measured work; the first runs are not yet compiled.
 */
export function machinePace(): number {
  const shortest = Math.min(...Array.from({ length: runs }, referenceWorkedMs));
  return Math.min(slowestPace, Math.max(1, shortest / referenceMs));
}
