/** A server that is asked over HTTP: ours, another one that speaks the same API (`--against`), or the bare one that gives the ceiling. */
export type CacheTarget = Readonly<{
  role: 'measured' | 'against' | 'bare';
  url: string;
  /** Without it the server's certificate is not checked. */
  caFile?: string;
  certFile?: string;
  keyFile?: string;
  token?: string;
  /** Processor time and memory are read of this process; unknown where it is on another machine. */
  pid?: number;
}>;
