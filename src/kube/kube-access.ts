/** The content of a kubeconfig, ready to use: a server and the credentials for it. */
export type KubeAccess = Readonly<{
  /** The kubeconfig's path, for errors; absent if there is none. */
  source?: string;
  /**
   * The present source of the CA, for errors: a file, or a part of the kubeconfig. Undefined if the
   * kubeconfig has no CA.
   */
  caSource?: () => string | undefined;
  /** Scheme, host, port, and the path before `/clusters`, without a slash at the end. */
  server: string;
  /** The name that the server's certificate must have; undefined: the host of the URL. */
  serverName: string | undefined;
  /** Whether the server's certificate is accepted unchecked. */
  insecure: boolean;
  /**
   * Called before every request, because files are replaced, tokens expire and plugins issue new
   * ones. Rejects with CacheError if there are no credentials, and with the signal's reason once
   * the signal is aborted.
   */
  credentials: (signal: AbortSignal) => Promise<Credentials>;
}>;

/**
 * Certificates and keys are PEM. A request with these credentials must not use a connection that
 * was made with other certificates.
 */
export type Credentials = Readonly<{
  /** The authorities for the server's certificate; absent: the authorities that Node trusts. */
  ca?: string;
  certificate?: string;
  key?: string;
  /** The Authorization header. */
  authorization?: string;
  /**
   * Called when the server answers 401, so that these credentials are not returned again. Absent if
   * nothing can issue other credentials.
   */
  drop?: () => void;
}>;
