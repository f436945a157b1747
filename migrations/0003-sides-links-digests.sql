-- Why: caches form a tree. For each shard, a cache stores where its objects come from (its side).
-- It sends nothing of the shard back there, and accepts pushes from nobody else. For each link, it
-- stores the position up to which the cache at the other end has sent everything. Each slice has a
-- digest, which every change updates. The two ends of a link compare digests without reading an
-- object.

-- side: 'local', 'parent' or 'child/NAME'; '' if the shard is nobody's, because it was removed.
-- moves: orders the claims of one incarnation.
-- plain: 1 if the shard is local, and its writers never claim it.
ALTER TABLE shards ADD COLUMN moves INTEGER NOT NULL DEFAULT 0;
ALTER TABLE shards ADD COLUMN side TEXT NOT NULL DEFAULT '';
ALTER TABLE shards ADD COLUMN plain INTEGER NOT NULL DEFAULT 0;
UPDATE shards SET side = 'local' WHERE removed = 0;

-- Plain writers wrote the shards that hold objects and that nobody claimed.
INSERT INTO shards (shard, incarnation, removed, moves, side, plain)
SELECT DISTINCT shard, 1, 0, 0, 'local', 1 FROM slices WHERE true
ON CONFLICT (shard) DO NOTHING;

-- The digest of an object's key and content, in two halves of 48 bits. It is stored beside the key,
-- so that a replacement or a delete need not read the old body. migrate.ts defines the functions.
ALTER TABLE objects ADD COLUMN digest_high INTEGER NOT NULL DEFAULT 0;
ALTER TABLE objects ADD COLUMN digest_low INTEGER NOT NULL DEFAULT 0;
UPDATE objects SET
  digest_high = digest_high(objects.cluster, objects.namespace, objects.name, c.version, c.body),
  digest_low = digest_low(objects.cluster, objects.namespace, objects.name, c.version, c.body)
FROM changes AS c WHERE c.revision = objects.revision;

-- The digest of a slice is the sum of its objects' digests, each half modulo 2^48.
-- edge: what the link lets through that the slice comes over, while the slice is current with the
-- link's position; '' while it is not.
ALTER TABLE slices ADD COLUMN digest_high INTEGER NOT NULL DEFAULT 0;
ALTER TABLE slices ADD COLUMN digest_low INTEGER NOT NULL DEFAULT 0;
ALTER TABLE slices ADD COLUMN edge TEXT NOT NULL DEFAULT '';
-- The sum of some tens of thousands of 48-bit halves overflows 64 bits. So each half is summed in
-- two parts of 24 bits.
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

-- cache_id: the cache at the other end.
-- position: the resourceVersion of that cache's store up to which it has sent everything, '' at
-- first.
CREATE TABLE links (side TEXT PRIMARY KEY, cache_id TEXT NOT NULL, position TEXT NOT NULL) STRICT, WITHOUT ROWID;

-- The name with which the cache that has this id first came as a child. It never changes.
CREATE TABLE children (cache_id TEXT PRIMARY KEY, name TEXT NOT NULL) STRICT, WITHOUT ROWID;

-- The move of a logical cluster's canonical path by a change; '' for no path. The compaction of the
-- revision deletes the row.
CREATE TABLE path_moves (revision INTEGER PRIMARY KEY, before TEXT NOT NULL, after TEXT NOT NULL) STRICT;
