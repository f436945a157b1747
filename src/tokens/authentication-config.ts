/**
 * Parses an AuthenticationConfiguration of kube-apiserver (apiserver.config.k8s.io): its issuers,
 * and how the claims of their tokens name users. Pure. CEL expressions are refused. Ignoring an
 * expression could admit other users, or give a user another's identity.
 */
import { isObject, itemsOf, membersOf, type Members } from '../domain/base/members.js';
import type { ClaimMapping } from './issuer-claims.js';
import type { Issuer } from './issuer-tokens.js';
import { signingAlgorithms } from './jwt.js';

/** `path`: keys and list indexes, from the outermost to the innermost. */
export type ConfigProblem = Readonly<{ path: readonly (string | number)[]; message: string }>;

export type ParsedConfig = Readonly<{ value: readonly Issuer[]; problems: readonly ConfigProblem[] }>;

type Path = ConfigProblem['path'];

const groupVersion = /^apiserver\.config\.k8s\.io\/v1(?:alpha1|beta1)?$/;
const issuersMax = 64;
const isExpression = 'is an expression (CEL), which is not supported';

/** `value`: the parsed YAML of the file. */
export function parseAuthenticationConfig(value: unknown): ParsedConfig {
  const reader = new Reader();
  const config = reader.members(value, [], ['apiVersion', 'kind', 'jwt', 'anonymous']);
  if (!groupVersion.test(String(config['apiVersion'])))
    reader.report(['apiVersion'], 'must be apiserver.config.k8s.io/v1, v1beta1 or v1alpha1');
  if (config['kind'] !== 'AuthenticationConfiguration') reader.report(['kind'], 'must be AuthenticationConfiguration');
  const anonymous = reader.members(config['anonymous'] ?? {}, ['anonymous'], ['enabled', 'conditions']);
  if ((anonymous['enabled'] ?? false) !== false)
    reader.report(
      ['anonymous', 'enabled'],
      'must be false: a front door that checks tokens refuses a request with neither a certificate nor a token',
    );
  const list = reader.list(config['jwt'] ?? [], ['jwt']);
  if (list.length > issuersMax) reader.report(['jwt'], `has ${list.length} issuers; at most ${issuersMax} are allowed`);
  const issuers = list.slice(0, issuersMax).map((each, i) => issuerOf(reader, each, ['jwt', i]));
  issuers.forEach(({ url }, i) => {
    if (issuers.findIndex((other) => other.url === url) < i) reader.report(['jwt', i, 'issuer', 'url'], 'is there twice');
  });
  return { value: issuers, problems: reader.problems };
}

function issuerOf(reader: Reader, value: unknown, path: Path): Issuer {
  const jwt = reader.members(value, path, ['issuer', 'claimValidationRules', 'claimMappings', 'userValidationRules']);
  const at = [...path, 'issuer'];
  const names = ['url', 'discoveryURL', 'certificateAuthority', 'audiences', 'audienceMatchPolicy', 'egressSelectorType'];
  const issuer = reader.members(jwt['issuer'], at, names);
  if (issuer['egressSelectorType'] !== undefined) reader.report([...at, 'egressSelectorType'], 'is not supported');
  if (reader.list(jwt['userValidationRules'] ?? [], [...path, 'userValidationRules']).length > 0)
    reader.report([...path, 'userValidationRules'], isExpression);
  const mappings = reader.members(jwt['claimMappings'], [...path, 'claimMappings'], ['username', 'groups', 'uid', 'extra']);
  const mappingAt = (name: string): Path => [...path, 'claimMappings', name];
  if (reader.list(mappings['extra'] ?? [], mappingAt('extra')).length > 0) reader.report(mappingAt('extra'), isExpression);
  if (mappings['uid'] !== undefined) reader.report(mappingAt('uid'), 'is not supported: the front door passes no uid on to backends');
  return {
    url: httpsUrl(reader, issuer['url'], [...at, 'url']),
    discoveryUrl: issuer['discoveryURL'] === undefined ? undefined : httpsUrl(reader, issuer['discoveryURL'], [...at, 'discoveryURL']),
    ca:
      issuer['certificateAuthority'] === undefined
        ? undefined
        : reader.text(issuer['certificateAuthority'], [...at, 'certificateAuthority']),
    audiences: audiencesOf(reader, issuer, at),
    username: mappingOf(reader, mappings['username'] ?? {}, mappingAt('username')),
    groups: mappings['groups'] === undefined ? undefined : mappingOf(reader, mappings['groups'], mappingAt('groups')),
    required: requiredOf(reader, jwt['claimValidationRules'] ?? [], [...path, 'claimValidationRules']),
    algorithms: signingAlgorithms,
  };
}

function audiencesOf(reader: Reader, issuer: Members, at: Path): readonly string[] {
  const audiences = reader
    .list(issuer['audiences'] ?? [], [...at, 'audiences'])
    .map((each, i) => reader.text(each, [...at, 'audiences', i]));
  if (audiences.length === 0) reader.report([...at, 'audiences'], 'needs at least one audience');
  const { audienceMatchPolicy: policy } = issuer;
  if (audiences.length > 1 ? policy !== 'MatchAny' : policy !== undefined && policy !== '' && policy !== 'MatchAny')
    reader.report([...at, 'audienceMatchPolicy'], 'must be MatchAny');
  return audiences;
}

function mappingOf(reader: Reader, value: unknown, path: Path): ClaimMapping {
  const { claim, prefix, expression } = reader.members(value, path, ['claim', 'prefix', 'expression']);
  if (expression !== undefined && expression !== '') reader.report([...path, 'expression'], isExpression);
  if (typeof prefix !== 'string') reader.report([...path, 'prefix'], 'must be given beside a claim, as a string that may be empty');
  return { claim: reader.text(claim, [...path, 'claim']), prefix: String(prefix) };
}

function requiredOf(reader: Reader, value: unknown, path: Path): ReadonlyMap<string, string> {
  const required = new Map<string, string>();
  for (const [i, each] of reader.list(value, path).entries()) {
    const rule = reader.members(each, [...path, i], ['claim', 'requiredValue', 'expression', 'message']);
    if (rule['expression'] !== undefined && rule['expression'] !== '') reader.report([...path, i, 'expression'], isExpression);
    else {
      const claim = reader.text(rule['claim'], [...path, i, 'claim']);
      const { requiredValue = '' } = rule;
      if (typeof requiredValue !== 'string') reader.report([...path, i, 'requiredValue'], 'must be a string');
      if (required.has(claim)) reader.report([...path, i, 'claim'], 'is there twice');
      required.set(claim, String(requiredValue));
    }
  }
  return required;
}

function httpsUrl(reader: Reader, value: unknown, path: Path): string {
  const text = reader.text(value, path);
  if (text !== '' && !isIssuerUrl(text)) reader.report(path, 'must be an https URL without credentials, query or fragment');
  return text;
}

/** Whether the text is the URL of an issuer. Tokens name it by exactly these characters. */
export function isIssuerUrl(text: string): boolean {
  if (!/^https:\/\/[^?#\s]+$/.test(text) || !URL.canParse(text)) return false;
  const { username, password } = new URL(text);
  return username === '' && password === '';
}

/** Reports each invalid value, and reads it as empty. */
class Reader {
  readonly problems: ConfigProblem[] = [];

  report(path: Path, message: string): void {
    this.problems.push({ path, message });
  }

  members(value: unknown, path: Path, known: readonly string[]): Members {
    if (!isObject(value)) this.report(path, `must be a mapping of ${known.join(', ')}`);
    const members = membersOf(value);
    for (const name of Object.keys(members))
      if (!known.includes(name)) this.report([...path, name], `is not a key here; the keys are ${known.join(', ')}`);
    return members;
  }

  list(value: unknown, path: Path): readonly unknown[] {
    if (!Array.isArray(value)) this.report(path, 'must be a list');
    return itemsOf(value);
  }

  text(value: unknown, path: Path): string {
    if (typeof value === 'string' && value !== '') return value;
    this.report(path, 'must be given, as a string');
    return '';
  }
}
