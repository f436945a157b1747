/** The content of a kubeconfig, ready to use: a server and the credentials for it. */
export type KubeAccess = Readonly<{
  /** The kubeconfig's path, for errors; absent if there is none. */
  source?: string;
  /**
   * The present source of its CA, for errors: a file, or a part of the kubeconfig. Undefined if it
   * has no CA.
   */
  caSource?: () => string | undefined;
  /** Scheme, host, port, and the path before `/clusters`, without a slash at the end. */
  server: string;
  /** The name its certificate must have, if it is not the one in the URL. */
  serverName: string | undefined;
  /** Whether its certificate is not checked at all. */
  insecure: boolean;
  /**
   * Called before every request, because files are replaced, tokens expire and plugins issue new
   * ones. Rejects with CacheError if there are none, and with the signal's reason once that is
   * aborted.
   */
  credentials: (signal: AbortSignal) => Promise<Credentials>;
}>;

/**
 * Certificates and keys are PEM. A request with these must not use a connection that was made with
 * other certificates.
 */
export type Credentials = Readonly<{
  /** The authorities for the server's certificate; absent means the system's. */
  ca?: string;
  certificate?: string;
  key?: string;
  /** The header of that name. */
  authorization?: string;
  /**
   * Called when the server answers 401, so that these credentials are not returned again. Absent if
   * there can be no others.
   */
  drop?: () => void;
}>;
