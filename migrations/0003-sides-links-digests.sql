-- Why: caches form a tree. For every shard a cache knows where its truth comes from (its side), so that nothing goes back there and
-- nobody else speaks for it; for every link, up to where the cache at the other end has told everything. What a slice holds is summed
-- up in a digest, kept in step with every change, so that both ends of a link can compare it without reading an object.

-- side: 'local', 'parent' or 'child/NAME'; '' when the shard is nobody's, because it was removed.
-- moves: orders claims of one incarnation. plain: 1 when it is local and written by somebody who never claims.
ALTER TABLE shards ADD COLUMN moves INTEGER NOT NULL DEFAULT 0;
ALTER TABLE shards ADD COLUMN side TEXT NOT NULL DEFAULT '';
ALTER TABLE shards ADD COLUMN plain INTEGER NOT NULL DEFAULT 0;
UPDATE shards SET side = 'local' WHERE removed = 0;

-- A shard that holds something and never claimed was written by plain writers.
INSERT INTO shards (shard, incarnation, removed, moves, side, plain)
SELECT DISTINCT shard, 1, 0, 0, 'local', 1 FROM slices WHERE true
ON CONFLICT (shard) DO NOTHING;

-- Of the object's key and content: two halves of 48 bits. It stands beside the key so that replacing and deleting need no old body.
-- The functions come from migrate.ts, which knows how a digest is made.
ALTER TABLE objects ADD COLUMN digest_high INTEGER NOT NULL DEFAULT 0;
ALTER TABLE objects ADD COLUMN digest_low INTEGER NOT NULL DEFAULT 0;
UPDATE objects SET
  digest_high = digest_high(objects.cluster, objects.namespace, objects.name, c.version, c.body),
  digest_low = digest_low(objects.cluster, objects.namespace, objects.name, c.version, c.body)
FROM changes AS c WHERE c.revision = objects.revision;

-- The sum of those of its objects, each half modulo 2^48. edge: what the link it comes over lets through, while it is in step
-- with that link's position; '' when it is not.
ALTER TABLE slices ADD COLUMN digest_high INTEGER NOT NULL DEFAULT 0;
ALTER TABLE slices ADD COLUMN digest_low INTEGER NOT NULL DEFAULT 0;
ALTER TABLE slices ADD COLUMN edge TEXT NOT NULL DEFAULT '';
-- Halves of 48 bits overflow 64 bits when some tens of thousands are summed, hence the sums of their own halves.
UPDATE slices SET
  digest_high = ((sums.high_high % 16777216) * 16777216 + sums.high_low) % 281474976710656,
  digest_low = ((sums.low_high % 16777216) * 16777216 + sums.low_low) % 281474976710656
FROM (
  SELECT shard, resource,
         sum(digest_high >> 24) AS high_high, sum(digest_high & 16777215) AS high_low,
         sum(digest_low >> 24) AS low_high, sum(digest_low & 16777215) AS low_low
  FROM objects GROUP BY resource, shard
) AS sums
WHERE sums.shard = slices.shard AND sums.resource = slices.resource;

-- cache_id: the cache at the other end. position: the resourceVersion of its store up to which it has told everything, '' at first.
CREATE TABLE links (side TEXT PRIMARY KEY, cache_id TEXT NOT NULL, position TEXT NOT NULL) STRICT, WITHOUT ROWID;

-- The name under which the cache of an id first came as a child, for good.
CREATE TABLE children (cache_id TEXT PRIMARY KEY, name TEXT NOT NULL) STRICT, WITHOUT ROWID;

-- Where a logical cluster's canonical path moved with a change: '' for none. A row goes when its revision is compacted.
CREATE TABLE path_moves (revision INTEGER PRIMARY KEY, before TEXT NOT NULL, after TEXT NOT NULL) STRICT;
