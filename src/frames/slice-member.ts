/** A slice as a member of a frame. It is parsed, because it becomes part of keys. */
import { parseShardName } from '../domain/shard.js';
import type { Slice } from '../domain/slice.js';
import { asList, asParsed, type Member } from './frame-members.js';

/** The characters of a group, a plural and an identity in any Kubernetes API: none that separates the parts of a key. */
const groupPattern = /^[a-z0-9.-]{0,253}$/;
const pluralPattern = /^[a-z0-9-]{1,253}$/;
const identityPattern = /^[A-Za-z0-9.-]{0,253}$/;

export function asSlice(member: Member): Slice {
  const [shard, group, resource, identity] = asList(member);
  const part = (value: unknown, name: string, pattern: RegExp): string =>
    asParsed({ value, name: `${member.name}.${name}` }, (text) => (pattern.test(text) ? text : undefined));
  return {
    shard: asParsed({ value: shard, name: `${member.name}.shard` }, parseShardName),
    resource: {
      group: part(group, 'group', groupPattern),
      resource: part(resource, 'resource', pluralPattern),
      identity: part(identity, 'identity', identityPattern),
    },
  };
}
