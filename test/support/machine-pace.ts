/**
 * How fast this machine is now. Bounds on processor time are set for a machine of which `referenceMs` is known; one that is slower, or whose cores
 * others use too, takes longer for the same work, and so it does for the reference.
 */

/** What `reference` takes, in milliseconds of processor time, where the bounds were set, with nothing beside it. */
const referenceMs = 30;
/** Beyond that a bound would say nothing. */
const slowestPace = 3;
const runs = 6;

const bytes = new Uint8Array(4_000_000).map((_, index) => (index * 31) & 0xff);
const table = new Uint16Array(256).map((_, byte) => byte ^ 0x5a);
const text = `[${'{"a":1,"b":[true,null,"x"]},'.repeat(40_000)}1]`;

/** Like what a server does with a large body: it looks at each byte, and parses. */
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

/** How many times as long as where the bounds were set the same work takes: from 1 to 3. The shortest of a few runs counts, as it does
 * of what is measured; the first ones are not compiled. */
export function machinePace(): number {
  const shortest = Math.min(...Array.from({ length: runs }, referenceWorkedMs));
  return Math.min(slowestPace, Math.max(1, shortest / referenceMs));
}
