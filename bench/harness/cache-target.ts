/**
 * A server that is asked over HTTP: the measured one, another one with the same API (`--against`),
 * or the bare one that gives the ceiling.
 */
export type CacheTarget = Readonly<{
  role: 'measured' | 'against' | 'bare';
  url: string;
  /** Without it the server's certificate is not checked. */
  caFile?: string;
  certFile?: string;
  keyFile?: string;
  token?: string;
  /**
   * The process whose processor time and memory are read; undefined if it is on another machine.
   */
  pid?: number;
}>;
