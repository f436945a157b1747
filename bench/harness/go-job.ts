/** The jobs of bench/go-client and what it measures; main.go declares the same. What a job leaves out has no meaning for its kind. */
export type GoJob = Readonly<{
  kind: 'requests' | 'informers' | 'watches' | 'mixed';
  http1: boolean;
  gzip?: boolean;
  /** Of requests; `elsewhere` of watches: no write is within their scope. */
  operation?: 'get' | 'create' | 'update' | 'delete' | 'list' | 'page' | 'elsewhere';
  /** The objects that are read or written: of these resources, or of all, from this index to that. */
  resources?: readonly string[];
  from?: number;
  to?: number;
  /** Collections that are listed or watched, in turn. */
  paths?: readonly string[];
  pageLimit?: number;
  /** Requests under way at once. */
  workers?: number;
  /** Of watches, 0: each has one of its own. More are opened where the server allows one too few streams. */
  connections?: number;
  /** Informers, or watches. */
  clients?: number;
  /** So many of them read nothing. */
  silent?: number;
  /** The pace of writes; full speed when left out. */
  perSecond?: number;
  warmUpMs?: number;
  measuredMs?: number;
  /** How long events may take after the last write. */
  lateMs?: number;
  /** The server at which watches are opened, if it is another than the one that is written to. `ca`: the file of its certificate. */
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
  /** Of one processor. */
  clientBusy: number;
  openMs: number;
  events: number;
  /** From the first write to the last event at the slowest watch. */
  eventsMs: number;
  /** From the time at which a write was due. */
  delayP50Ms: number;
  delayP99Ms: number;
  delayMaxMs: number;
  /** Events that each watch should see, and how many watches saw others. */
  expected: number;
  watchersLess: number;
  unordered: number;
  /** Informers that were answered with a WatchList; the others listed. */
  watchLists: number;
  /** Answers that asked to come back later (429). The time until then is in the delays. */
  retried: number;
  details: Readonly<Record<string, Delays>> | null;
}>;
