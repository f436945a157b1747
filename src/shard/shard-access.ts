/** How a shard is reached, and as whom: the content of a kubeconfig, ready to use. */
export type ShardAccess = Readonly<{
  /** Scheme, host and port, and what stands before `/clusters`; without a slash at its end. */
  server: string;
  /** What its certificate is checked against; undefined means the system's own authorities. */
  ca: string | undefined;
  /** The name its certificate must have, where it is not the one in the URL. */
  serverName: string | undefined;
  /** Whether its certificate is not checked at all. */
  insecure: boolean;
  /** Called before every request, because tokens expire and plugins issue new ones. */
  credentials: () => Promise<Credentials>;
}>;

export type Credentials = Readonly<{ certificate?: string; key?: string; authorization?: string }>;
