/** How a server is reached, and as whom: the content of a kubeconfig, ready to use. */
export type KubeAccess = Readonly<{
  /** The kubeconfig's path, for errors; absent where there is none. */
  source?: string;
  /** What its CA is read from now, for errors: a file, or a part of the kubeconfig. Undefined where it names none. */
  caSource?: () => string | undefined;
  /** Scheme, host and port, and what stands before `/clusters`; without a slash at its end. */
  server: string;
  /** The name its certificate must have, where it is not the one in the URL. */
  serverName: string | undefined;
  /** Whether its certificate is not checked at all. */
  insecure: boolean;
  /**
   * Called before every request, because files are replaced, tokens expire and plugins issue new ones. Rejects with CacheError when there
   * are none, and with the signal's reason once that is aborted.
   */
  credentials: (signal: AbortSignal) => Promise<Credentials>;
}>;

/** Certificates and keys are PEM. A connection that was made with other certificates must not be used for a request with these. */
export type Credentials = Readonly<{
  /** What the server's certificate is checked against; absent means the system's own authorities. */
  ca?: string;
  certificate?: string;
  key?: string;
  /** The header of that name. */
  authorization?: string;
  /** To be called when the server answers 401: these are not given out again. Absent where nobody could issue others. */
  drop?: () => void;
}>;
