/**
 * The jobs of bench/go-client and their results; main.go declares the same. A field that a job
 * leaves out has no meaning for its kind.
 */
export type GoJob = Readonly<{
  kind: 'requests' | 'informers' | 'watches' | 'mixed';
  http1: boolean;
  gzip?: boolean;
  /** The operation of requests. `elsewhere` is for watches: no write is within their scope. */
  operation?: 'get' | 'create' | 'update' | 'delete' | 'list' | 'page' | 'elsewhere';
  /**
   * The objects that are read or written: those of these resources, or of all, from index `from` to
   * `to`.
   */
  resources?: readonly string[];
  from?: number;
  to?: number;
  /** Collections to list or watch, in turn. */
  paths?: readonly string[];
  pageLimit?: number;
  /** Requests under way at once. */
  workers?: number;
  /**
   * For watches 0 means one connection for each. More connections are opened if the server allows
   * too few streams.
   */
  connections?: number;
  /** The number of informers or watches. */
  clients?: number;
  /** How many of them read nothing. */
  silent?: number;
  /** Writes per second; full speed without it. */
  perSecond?: number;
  warmUpMs?: number;
  measuredMs?: number;
  /** How long events may take after the last write. */
  lateMs?: number;
  /**
   * The server for watches, if it is not the one that receives the writes. `ca`: the file with the
   * CA of its certificate.
   */
  watched?: Readonly<{ server: string; ca: string }>;
}>;

export type GoStep = 'opening' | 'opened' | 'begin' | 'end';

type Delays = Readonly<{ count: number; p50Ms: number; p99Ms: number; maxMs: number }>;

export type GoMeasured = Readonly<{
  operations: number;
  elapsedMs: number;
  p50Ms: number;
  p99Ms: number;
  bytes: number;
  objects: number;
  protocol: string;
  wrong: number;
  firstWrong: string;
  /** The share of one processor that the client used. */
  clientBusy: number;
  openMs: number;
  events: number;
  /** The time from the first write to the last event at the slowest watch. */
  eventsMs: number;
  /** Delays count from the time at which a write was due. */
  delayP50Ms: number;
  delayP99Ms: number;
  delayMaxMs: number;
  /** `expected`: the events that each watch should see. `watchersLess`: watches that saw others. */
  expected: number;
  watchersLess: number;
  unordered: number;
  /** Informers that were answered with a WatchList; the others listed. */
  watchLists: number;
  /** Answers 429, after which the client retried. The delays include the waiting time. */
  retried: number;
  details: Readonly<Record<string, Delays>> | null;
}>;
