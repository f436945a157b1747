/** A slice as a member of a frame, and what is said of one. It is parsed, because it becomes part of keys. */
import { parseShardName } from '../domain/shard.js';
import type { Slice } from '../domain/slice.js';
import { frameBounds } from './frame-bounds.js';
import { asCount, asFilterHash, asFlag, asList, asListOf, asParsed, type Member } from './frame-members.js';
import type { HeldSlice, SliceFreshness } from './frame.js';

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

/** As many as a writer may name in one frame. */
export function asSlices(member: Member): readonly Slice[] {
  return asListOf(member, asSlice, frameBounds.namesPerFrame);
}

export function asHeld({ value, name }: Member): HeldSlice {
  const [slice, filterHash, syncedTerm] = asList({ value, name });
  return {
    slice: asSlice({ value: slice, name: `${name}.slice` }),
    filterHash: asFilterHash({ value: filterHash, name: `${name}.filterHash` }),
    syncedTerm: asCount({ value: syncedTerm, name: `${name}.syncedTerm` }),
  };
}

/** As many as a writer may report in one frame. */
export function asReported(member: Member): readonly SliceFreshness[] {
  return asListOf(member, asFreshness, frameBounds.namesPerFrame);
}

function asFreshness({ value, name }: Member): SliceFreshness {
  const [slice, connected, synced, lagMs, whole] = asList({ value, name });
  return {
    slice: asSlice({ value: slice, name: `${name}.slice` }),
    connected: asFlag({ value: connected, name: `${name}.connected` }),
    synced: asFlag({ value: synced, name: `${name}.synced` }),
    lagMs: asCount({ value: lagMs, name: `${name}.lagMs` }),
    whole: asFlag({ value: whole, name: `${name}.whole` }),
  };
}
