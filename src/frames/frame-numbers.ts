import type { Frame } from './frame.js';

/** The number that opens each kind of frame on the wire. */
export const frameNumbers = {
  hello: 1,
  welcome: 2,
  put: 3,
  delete: 4,
  begin: 5,
  end: 6,
  resync: 7,
  progress: 8,
  claim: 9,
  route: 10,
  policy: 11,
  digest: 12,
  ack: 13,
  refuse: 14,
  status: 15,
  bye: 16,
  resume: 17,
  heartbeat: 18,
  report: 19,
  summary: 20,
  standby: 21,
  types: 22,
  swept: 23,
} as const satisfies Readonly<Record<Frame['kind'], number>>;
