/**
 * Allow rules for the objects that one end of a link lets cross in one direction. An object crosses
 * if any rule matches; a rule matches if every term in it matches. An empty policy lets nothing
 * through. A path prefix matches that path and all paths below it, by whole segments.
 *
 * Rules come from a configuration file, or as JSON text from the cache at the other end, which is
 * not trusted. Rules are normalised, with lists sorted and without duplicates, so that policies of
 * equal meaning have equal texts.
 *
 * P1 An unknown key or value is reported and never skipped, because the rest of the rule would let
 *    more through.
 * P2 parse(format(policy)) is the same policy, and format(parse(text)) is stable.
 *
 * Bounds: rulesMax rules, listMax members of a list, typesMax types in all, termsMax labels or
 * annotations in one rule, policyCharactersMax of text.
 */
import { parseAnyPath, parseClusterName, type ClusterName } from './cluster.js';
import { formatRequirement, parseLabelSelector, type Requirement } from './syntax/label-selector.js';
import { labelKeyFlaws, labelValueFlaws } from './syntax/label-syntax.js';
import { isObject, type Members } from './base/members.js';
import { formatGroupResource } from './resource.js';
import { parseShardName, type ShardName } from './shard.js';

export type LinkPolicy = readonly LinkRule[];

export type LinkRule = Readonly<{
  /** Undefined, here and below: no restriction. */
  types: readonly TypePattern[] | undefined;
  /**
   * '*': every shard, named explicitly. In rules for objects from a child, undefined has another
   * meaning (`acceptedFromChild`).
   */
  shards: readonly ShardName[] | '*' | undefined;
  clusters: readonly ClusterName[] | undefined;
  pathPrefix: string | undefined;
  labels: readonly Requirement[];
  annotations: readonly AnnotationTerm[];
}>;

/**
 * A rule for all objects of these types; for those of every served type if `types` is undefined.
 */
export function everyObjectOf(types?: readonly Pick<TypePattern, 'group' | 'resource'>[]): LinkRule {
  const patterns = types?.map(({ group, resource }) => ({ group, resource, identity: undefined }));
  return { types: patterns, shards: undefined, clusters: undefined, pathPrefix: undefined, labels: [], annotations: [] };
}

/** `identity` undefined: every identity, and also the built-in type, which has none. */
export type TypePattern = Readonly<{ group: string; resource: string; identity: string | undefined }>;

/** `value` undefined: the annotation must exist, with any value. */
export type AnnotationTerm = Readonly<{ key: string; value: string | undefined }>;

/** Names of members and indexes of lists, from the whole value to one part. */
export type KeyPath = readonly (string | number)[];

export type PolicyProblem = Readonly<{ path: KeyPath; message: string }>;

export type ParsedLinkPolicy =
  | Readonly<{ kind: 'parsed'; policy: LinkPolicy }>
  | Readonly<{ kind: 'wrong'; problems: readonly [PolicyProblem, ...PolicyProblem[]] }>;

export const linkPolicyBounds = Object.freeze({
  rulesMax: 256,
  listMax: 1000,
  typesMax: 4096,
  termsMax: 64,
  policyCharactersMax: 64 * 1024,
});

/** Nobody needs more problems, and a hostile text could cause a hundred thousand. */
const problemsMax = 100;
const quotedCharactersMax = 80;
/** A group, a resource and an identity, each at most as long as a name may be. */
const typeCharactersMax = 3 * 253;
const typePattern = /^([a-z0-9][a-z0-9-]*)(?:\.([a-z0-9][a-z0-9.-]*))?(?::([A-Za-z0-9][A-Za-z0-9-]*))?$/;
const ruleKeys = ['types', 'shards', 'clusters', 'pathPrefix', 'labels', 'annotations'];
const acceptsType = "a type such as apiexports.apis.kcp.io, secrets or instances.machines.svm.io:IDENTITY, or '*' for every type";
const acceptsShard = "the name of a shard, or '*' for every shard";

/**
 * Reads one rule or a list of rules. null and undefined let nothing through. `path` locates the
 * value in reported problems.
 */
export function parseLinkPolicy(value: unknown, path: KeyPath = []): ParsedLinkPolicy {
  const reader = new PolicyReader();
  const policy = reader.policy(value, path);
  const [first, ...others] = reader.problems;
  if (first !== undefined) return { kind: 'wrong', problems: [first, ...others] };
  const types = policy.reduce((sum, rule) => sum + (rule.types?.length ?? 0), 0);
  const { typesMax } = linkPolicyBounds;
  if (types > typesMax)
    return { kind: 'wrong', problems: [{ path, message: `names ${types} types in all; at most ${typesMax} are accepted` }] };
  return isTooLong(formatLinkPolicy(policy)) ? tooLong(path) : { kind: 'parsed', policy };
}

/** Reads a text that the cache at the other end wrote with `formatLinkPolicy`. */
export function parseLinkPolicyText(text: string): ParsedLinkPolicy {
  if (isTooLong(text)) return tooLong([]);
  try {
    return parseLinkPolicy(JSON.parse(text));
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return { kind: 'wrong', problems: [{ path: [], message: 'is not JSON' }] };
  }
}

/** Returns the same text for policies with the same rules, whatever their order and duplicates. */
export function formatLinkPolicy(policy: LinkPolicy): string {
  return `[${sorted(policy.map(formatRule)).join()}]`;
}

export function formatTypePattern({ group, resource, identity }: TypePattern): string {
  return `${formatGroupResource({ group, resource })}${identity === undefined ? '' : `:${identity}`}`;
}

export function formatRequirements(requirements: readonly Requirement[]): string {
  return sorted(requirements.map(formatRequirement)).join();
}

/** Always writes `types`, so that no rule is empty. */
function formatRule({ types, shards, clusters, pathPrefix, labels, annotations }: LinkRule): string {
  return JSON.stringify({
    types: types?.map(formatTypePattern) ?? ['*'],
    shards: shards === '*' ? ['*'] : shards,
    clusters,
    pathPrefix,
    labels: labels.length === 0 ? undefined : formatRequirements(labels),
    annotations: annotations.length === 0 ? undefined : Object.fromEntries(annotations.map(({ key, value }) => [key, value ?? '*'])),
  });
}

class PolicyReader {
  readonly problems: PolicyProblem[] = [];

  policy(value: unknown, path: KeyPath): LinkPolicy {
    if (value === undefined || value === null) return [];
    if (!Array.isArray(value)) return this.#present([this.#rule(value, path)]);
    const { rulesMax } = linkPolicyBounds;
    if (value.length <= rulesMax) return this.#present(value.map((rule: unknown, index) => this.#rule(rule, [...path, index])));
    this.#report(path, `has ${value.length} rules; at most ${rulesMax} are accepted`);
    return [];
  }

  /** Returns undefined after it has reported at least one problem. */
  #rule(value: unknown, path: KeyPath): LinkRule | undefined {
    if (!isObject(value)) return this.#report(path, `must be a rule: a mapping of ${ruleKeys.join(', ')}`);
    const names = Object.keys(value);
    for (const name of names.filter((name) => !ruleKeys.includes(name)))
      this.#report([...path, name], `unknown key ${quote(name)}; a rule may name ${ruleKeys.join(', ')}`);
    if (names.length === 0) return this.#report(path, "an empty rule is a mistake; types: ['*'] lets everything through");

    const types = this.#every(this.#list(value, 'types', path, parseType, acceptsType), [...path, 'types']);
    return {
      types: types === '*' ? undefined : types,
      shards: this.#every(this.#list(value, 'shards', path, parseShard, acceptsShard), [...path, 'shards']),
      clusters: this.#list(value, 'clusters', path, parseClusterName, 'the name of a logical cluster'),
      pathPrefix: this.#text(value, 'pathPrefix', path, parseAnyPath, 'a canonical path such as root:tenant-a'),
      labels: this.#labels(value, path),
      annotations: this.#annotations(value, path),
    };
  }

  #list<Value>(
    rule: Members,
    name: string,
    rulePath: KeyPath,
    parse: (text: string) => Value | undefined,
    accepts: string,
  ): readonly Value[] | undefined {
    if (!Object.hasOwn(rule, name)) return undefined;
    const path = [...rulePath, name];
    const given = rule[name];
    if (!Array.isArray(given) || given.length === 0) return this.#report(path, 'must be a non-empty list');
    const { listMax } = linkPolicyBounds;
    if (given.length > listMax) return this.#report(path, `has ${given.length} members; at most ${listMax} are accepted`);

    const values = new Map<string, Value>();
    given.forEach((member: unknown, index) => {
      const value = this.#parsed(member, [...path, index], parse, accepts);
      if (value !== undefined) values.set(JSON.stringify(value), value);
    });
    return sorted([...values.keys()]).flatMap((text) => values.get(text) ?? []);
  }

  #every<Value>(list: readonly (Value | '*')[] | undefined, path: KeyPath): readonly Value[] | '*' | undefined {
    if (list?.includes('*') !== true) return list?.flatMap((value) => (value === '*' ? [] : [value]));
    if (list.length > 1) this.#report(path, "'*' must be the only member");
    return '*';
  }

  #text(rule: Members, name: string, path: KeyPath, parse: (text: string) => string | undefined, accepts: string): string | undefined {
    return Object.hasOwn(rule, name) ? this.#parsed(rule[name], [...path, name], parse, accepts) : undefined;
  }

  #labels(rule: Members, rulePath: KeyPath): readonly Requirement[] {
    if (!Object.hasOwn(rule, 'labels')) return [];
    const given = rule['labels'];
    const path = [...rulePath, 'labels'];
    const { length: problemsBefore } = this.problems;
    const requirements = typeof given === 'string' ? this.#selector(given, path) : this.#equals(given, path);
    if (requirements === undefined) return [];
    const { termsMax, listMax } = linkPolicyBounds;
    if (requirements.length === 0 && this.problems.length === problemsBefore) this.#report(path, 'must not be empty');
    if (requirements.length > termsMax) this.#report(path, `asks for ${requirements.length} labels; at most ${termsMax} are accepted`);
    if (requirements.some((requirement) => 'values' in requirement && requirement.values.length > listMax))
      this.#report(path, `names more than ${listMax} values of one label`);
    const byText = new Map(requirements.map((requirement) => [formatRequirement(requirement), requirement]));
    return sorted([...byText.keys()]).flatMap((text) => byText.get(text) ?? []);
  }

  #selector(text: string, path: KeyPath): readonly Requirement[] | undefined {
    const selector = parseLabelSelector(text);
    return selector.kind === 'parsed'
      ? selector.value
      : this.#report(path, `is not a label selector: ${shorten(selector.refusal.message)}`);
  }

  #equals(given: unknown, path: KeyPath): readonly Requirement[] | undefined {
    if (!isObject(given)) return this.#report(path, 'must be a label selector, or a mapping of labels to values');
    return Object.entries(given).flatMap(([key, value]): readonly Requirement[] => {
      const flaw = labelKeyFlaws(key)[0] ?? (typeof value === 'string' ? labelValueFlaws(value)[0] : notText);
      if (flaw === undefined && typeof value === 'string') return [{ kind: 'in', key, values: [value] }];
      this.#report([...path, key], `${quote(key)}: ${flaw}`);
      return [];
    });
  }

  #annotations(rule: Members, rulePath: KeyPath): readonly AnnotationTerm[] {
    if (!Object.hasOwn(rule, 'annotations')) return [];
    const given = rule['annotations'];
    const path = [...rulePath, 'annotations'];
    const { termsMax } = linkPolicyBounds;
    const count = isObject(given) ? Object.keys(given).length : 0;
    if (!isObject(given) || count === 0) return this.#report(path, 'must be a non-empty mapping of annotations to values') ?? [];
    if (count > termsMax) return this.#report(path, `asks for ${count} annotations; at most ${termsMax} are accepted`) ?? [];
    const terms = Object.entries(given).flatMap(([key, value]): readonly AnnotationTerm[] => {
      const flaw = labelKeyFlaws(key.toLowerCase())[0] ?? (typeof value === 'string' ? undefined : notText);
      if (flaw === undefined && typeof value === 'string') return [{ key, value: value === '*' ? undefined : value }];
      this.#report([...path, key], `${quote(key)}: ${flaw}`);
      return [];
    });
    return terms.toSorted((left, right) => (left.key < right.key ? -1 : 1));
  }

  #parsed<Value>(given: unknown, path: KeyPath, parse: (text: string) => Value | undefined, accepts: string): Value | undefined {
    if (typeof given !== 'string') return this.#report(path, `must be ${accepts}; ${notText}`);
    return parse(given) ?? this.#report(path, `${quote(given)}: must be ${accepts}`);
  }

  #present(rules: readonly (LinkRule | undefined)[]): LinkPolicy {
    return rules.filter((rule) => rule !== undefined);
  }

  #report(path: KeyPath, message: string): undefined {
    if (this.problems.length < problemsMax) this.problems.push({ path, message });
  }
}

/**
 * YAML reads an unquoted 12 or true as a number or a boolean, and loses how the text was written.
 */
const notText = 'must be a string, in quotes if it looks like a number';

function parseType(text: string): TypePattern | '*' | undefined {
  if (text === '*') return text;
  const [, resource, group = '', identity] = text.length > typeCharactersMax ? [] : (typePattern.exec(text) ?? []);
  return resource === undefined ? undefined : { group: group === 'core' ? '' : group, resource, identity };
}

function parseShard(text: string): ShardName | '*' | undefined {
  return text === '*' ? text : parseShardName(text);
}

function isTooLong(text: string): boolean {
  return text.length > linkPolicyBounds.policyCharactersMax;
}

function tooLong(path: KeyPath): ParsedLinkPolicy {
  return { kind: 'wrong', problems: [{ path, message: `is longer than ${linkPolicyBounds.policyCharactersMax} characters in all` }] };
}

function sorted(texts: readonly string[]): readonly string[] {
  return [...new Set(texts)].sort();
}

function quote(text: string): string {
  return JSON.stringify(shorten(text));
}

function shorten(text: string): string {
  return text.length > quotedCharactersMax ? `${text.slice(0, quotedCharactersMax)}…` : text;
}
