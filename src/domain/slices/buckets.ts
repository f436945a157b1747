/**
 * Divides the objects of a slice into 256 buckets, by a hash of their keys. Two caches whose copies
 * of a slice differ find out which buckets differ, and the sender sends only those.
 *
 * Both ends must compute the same hash, so it is part of the protocol. It is FNV-1a over the UTF-16
 * units of `cluster/namespace/name`, mixed once more. The highest eight bits are the bucket.
 */
type ObjectName = Readonly<{ cluster: string; namespace: string; name: string }>;

export const bucketCount = 256;

/** A set of buckets as 64 hexadecimal digits: one bit for each bucket, bucket 0 first. */
export type BucketSet = string & { readonly brand: 'BucketSet' };

const pattern = /^[0-9a-f]{64}$/;
const offsetBasis = 0x811c9dc5;
const prime = 0x01000193;

export const noBuckets = '0'.repeat(bucketCount / 4) as BucketSet;

export function bucketOf({ cluster, namespace, name }: ObjectName): number {
  const text = `${cluster}/${namespace}/${name}`;
  let hash = offsetBasis;
  for (let i = 0; i < text.length; i += 1) hash = Math.imul(hash ^ text.charCodeAt(i), prime);
  // In FNV-1a the last characters hardly change the highest bits; this step mixes them in.
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

export function inBuckets(set: BucketSet): (key: ObjectName) => boolean {
  const bits = Buffer.from(set, 'hex');
  return (key) => {
    const bucket = bucketOf(key);
    return ((bits[bucket >>> 3] ?? 0) & (0x80 >>> (bucket & 7))) !== 0;
  };
}
