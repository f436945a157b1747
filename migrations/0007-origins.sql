-- Why: of two claims of equal rank, the id of the cache at which the shard's writer is decides. For
-- a shard behind a link, the column has the lowest possible id until a claim brings the real one.
ALTER TABLE shards ADD COLUMN origin TEXT NOT NULL DEFAULT '';
UPDATE shards SET origin = COALESCE((SELECT value FROM meta WHERE name = 'cache_id'), '') WHERE side = 'local' OR removed = 1;
-- Caches on the way counted moves. From now on, only a pusher does.
UPDATE shards SET moves = 0;
