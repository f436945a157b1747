/**
 * The objects of a slice in 256 buckets, by a hash of their keys: two caches that do not hold the same find out in which buckets they differ, and only
 * those are sent. Both must hash alike, so the hash belongs to the protocol: FNV-1a over the UTF-16 units
 * of `cluster/namespace/name`, mixed once more, the highest eight bits.
 */
type ObjectName = Readonly<{ cluster: string; namespace: string; name: string }>;

export const bucketCount = 256;

/** Some of the buckets, as 64 hexadecimal digits: a bit for each, from the first. */
export type BucketSet = string & { readonly brand: 'BucketSet' };

const pattern = /^[0-9a-f]{64}$/;
const offsetBasis = 0x811c9dc5;
const prime = 0x01000193;

export const noBuckets = '0'.repeat(bucketCount / 4) as BucketSet;

export function bucketOf({ cluster, namespace, name }: ObjectName): number {
  const text = `${cluster}/${namespace}/${name}`;
  let hash = offsetBasis;
  for (let i = 0; i < text.length; i += 1) hash = Math.imul(hash ^ text.charCodeAt(i), prime);
  // The last characters have hardly reached the highest bits yet.
  hash = Math.imul(hash ^ (hash >>> 15), prime);
  return hash >>> 24;
}

export function parseBucketSet(text: string): BucketSet | undefined {
  return pattern.test(text) ? (text as BucketSet) : undefined;
}

export function bucketSet(buckets: Iterable<number>): BucketSet {
  const bits = Buffer.alloc(bucketCount / 8);
  for (const bucket of buckets) bits[bucket >>> 3] = (bits[bucket >>> 3] ?? 0) | (0x80 >>> (bucket & 7));
  return bits.toString('hex') as BucketSet;
}

/** Whether an object is in one of them. */
export function inBuckets(set: BucketSet): (key: ObjectName) => boolean {
  const bits = Buffer.from(set, 'hex');
  return (key) => {
    const bucket = bucketOf(key);
    return ((bits[bucket >>> 3] ?? 0) & (0x80 >>> (bucket & 7))) !== 0;
  };
}
