/** Opens the front door's token readers: of files that options name, of issuers, of a webhook. */
import { checkAuthorities, readAuthorities, readText } from '../certificates/pair-files.js';
import { readCheckedFile } from '../config/files/checked-file.js';
import { tokenOptions } from '../config/options/command-options.js';
import type { CommandValues } from '../config/command-line/command-values.js';
import { SettingsError } from '../config/settings-error.js';
import type { Log } from '../diagnostics/log.js';
import type { Members } from '../domain/base/members.js';
import type { Clock } from '../domain/ports.js';
import { isIssuerUrl, parseAuthenticationConfig } from '../tokens/authentication-config.js';
import { IssuerTokens, type Issuer } from '../tokens/issuer-tokens.js';
import { fetchJson } from '../tokens/json-over-tls.js';
import { signingAlgorithms } from '../tokens/jwt.js';
import { parseServiceAccountKeys, ServiceAccountTokens, serviceAccountTokensOfShards } from '../tokens/service-account-token.js';
import { parseTokenFile, tokenFileReader } from '../tokens/token-file.js';
import { readerOf, type TokenReader } from '../tokens/token-user.js';
import { WebhookTokens } from '../tokens/webhook-tokens.js';

export type TokenSettings = CommandValues<typeof tokenOptions>;

type Parts = Readonly<{ clock: Clock; log: Log }>;

/** The default issuer of kcp. */
const defaultIssuer = 'https://kcp.default.svc';

/**
 * Undefined: the front door checks no tokens. The webhook is last, so that it receives no token
 * that another reader knows. Throws SettingsError, CacheError.
 */
export async function openTokens(settings: TokenSettings, parts: Parts): Promise<TokenReader | undefined> {
  const problems = [...problemsOf(settings)];
  if (problems.length > 0) throw new SettingsError(problems);
  const { tokenFile, serviceAccountKeyFiles, authenticationConfig, oidcIssuerUrl, webhookConfig } = settings;
  const hasTokenOptions = [tokenFile, ...serviceAccountKeyFiles, authenticationConfig, oidcIssuerUrl, webhookConfig].some(
    (each) => each !== undefined,
  );
  if (!hasTokenOptions) return undefined;
  const local = [...fileReaders(settings), ...serviceAccountReaders(settings, parts), ...issuerReaders(settings, parts)];
  return readerOf([...local, ...(await webhookReaders(settings, parts))]);
}

function* problemsOf(settings: TokenSettings): Iterable<string> {
  const { serviceAccountKeyFiles, authenticationConfig, oidcIssuerUrl, oidcClientId } = settings;
  if (serviceAccountKeyFiles.length === 0)
    for (const flag of givenOf(settings, optionsOfServiceAccounts)) yield `--${flag} needs --service-account-key-file`;
  if (oidcIssuerUrl !== undefined && oidcClientId === undefined) yield '--oidc-issuer-url needs --oidc-client-id';
  if (oidcIssuerUrl !== undefined && !isIssuerUrl(oidcIssuerUrl))
    yield '--oidc-issuer-url must be an https URL without credentials, query or fragment';
  for (const flag of givenOf(settings, optionsOfIssuer)) {
    if (authenticationConfig !== undefined) yield `--${flag} and --authentication-config cannot be given together: put it into the file`;
    else if (oidcIssuerUrl === undefined) yield `--${flag} needs --oidc-issuer-url`;
  }
}

const optionsOfServiceAccounts = ['serviceAccountIssuers', 'apiAudiences'] as const;
const optionsOfIssuer = [
  'oidcIssuerUrl',
  'oidcClientId',
  'oidcCaFile',
  'oidcUsernameClaim',
  'oidcUsernamePrefix',
  'oidcGroupsClaim',
  'oidcGroupsPrefix',
  'oidcRequiredClaims',
  'oidcSigningAlgorithms',
] as const;

function givenOf(settings: TokenSettings, names: readonly (keyof TokenSettings)[]): readonly string[] {
  const isGiven = (value: unknown): boolean =>
    value !== undefined && (value instanceof Map ? value.size : (value as readonly unknown[]).length) > 0;
  return names.filter((name) => isGiven(settings[name])).map((name) => tokenOptions[name].flag);
}

function* fileReaders({ tokenFile }: TokenSettings): Iterable<TokenReader> {
  if (tokenFile === undefined) return;
  const file = parseTokenFile(readText(tokenFile, 'token file', 'token-auth-file'));
  if (file.kind === 'wrong') throw new SettingsError([`--token-auth-file: ${tokenFile}: ${file.problem}`]);
  yield tokenFileReader(file.tokens);
}

function* serviceAccountReaders(settings: TokenSettings, { clock }: Parts): Iterable<TokenReader> {
  const { serviceAccountKeyFiles, serviceAccountLookup, serviceAccountIssuers, apiAudiences } = settings;
  if (serviceAccountKeyFiles.length === 0) return;
  const keys = serviceAccountKeyFiles.flatMap((path) => {
    const found = parseServiceAccountKeys(readText(path, 'keys of service accounts', 'service-account-key-file'));
    if (found.size === 0)
      throw new SettingsError([`--service-account-key-file: ${path} holds neither an RSA key of at least 2,048 bits nor an EC key`]);
    return [...found];
  });
  const issuers = issuersOf(serviceAccountIssuers);
  if (serviceAccountLookup) {
    yield serviceAccountTokensOfShards(issuers);
    return;
  }
  const audiences = apiAudiences.length > 0 ? apiAudiences : issuers;
  yield new ServiceAccountTokens({ keys: new Map(keys), issuers, audiences, wallMs: () => clock.wallMs() });
}

function* issuerReaders(settings: TokenSettings, parts: Parts): Iterable<TokenReader> {
  const ofServiceAccounts = issuersOf(settings.serviceAccountIssuers);
  const ofFile =
    settings.authenticationConfig === undefined ? [] : readCheckedFile(settings.authenticationConfig, parseAuthenticationConfig);
  for (const issuer of [...issuerOfOptions(settings), ...ofFile]) {
    if (ofServiceAccounts.includes(issuer.url))
      throw new SettingsError([`${issuer.url} is already an issuer of service accounts, so it cannot be an OpenID Connect issuer too`]);
    if (issuer.ca !== undefined) checkAuthorities(`the CA of the issuer ${issuer.url}`, issuer.ca);
    yield new IssuerTokens(issuer, parts);
  }
}

function* issuerOfOptions(settings: TokenSettings): Iterable<Issuer> {
  const { oidcIssuerUrl: url, oidcClientId, oidcCaFile, oidcUsernameClaim = 'sub', oidcUsernamePrefix, oidcGroupsClaim } = settings;
  const { oidcSigningAlgorithms: algorithms } = settings;
  if (url === undefined || oidcClientId === undefined) return;
  const usualPrefix = oidcUsernameClaim === 'email' ? '' : `${url}#`;
  yield {
    url,
    discoveryUrl: undefined,
    ca: oidcCaFile === undefined ? undefined : readAuthorities(oidcCaFile, 'CA of the issuer', 'oidc-ca-file'),
    audiences: [oidcClientId],
    username: { claim: oidcUsernameClaim, prefix: oidcUsernamePrefix === '-' ? '' : (oidcUsernamePrefix ?? usualPrefix) },
    groups: oidcGroupsClaim === undefined ? undefined : { claim: oidcGroupsClaim, prefix: settings.oidcGroupsPrefix ?? '' },
    required: settings.oidcRequiredClaims,
    algorithms: algorithms.length > 0 ? signingAlgorithms.filter((each) => algorithms.includes(each)) : ['RS256'],
  };
}

async function webhookReaders(settings: TokenSettings, { clock, log }: Parts): Promise<readonly TokenReader[]> {
  const { webhookConfig: path, webhookVersion: version, webhookCacheTtlMs: cacheTtlMs } = settings;
  if (path === undefined) return [];
  const { KubeconfigFiles } = await import('../shard/kubeconfig/kubeconfig-files.js');
  const kubeconfig = KubeconfigFiles.open({ log }, { path, context: undefined, allowInsecure: false });
  if (kubeconfig.content.entry.exec !== undefined)
    throw new SettingsError([`${path}: the kubeconfig of a webhook cannot have an exec plugin`]);
  const ask = async (review: string): Promise<Members> => {
    const { entry, ca, certificate: cert, key, authorization } = kubeconfig.reload();
    return fetchJson(entry.server, { ca, cert, key, servername: entry.serverName, authorization }, review);
  };
  return [new WebhookTokens({ clock, ask }, { version, cacheTtlMs })];
}

function issuersOf(issuers: readonly string[]): readonly string[] {
  return issuers.length > 0 ? issuers : [defaultIssuer];
}
