-- Why: of two claims of one rank the id of the cache decides at which the shard's writer is. Until somebody tells it of what lies behind a link, it is
-- the lowest there can be.
ALTER TABLE shards ADD COLUMN origin TEXT NOT NULL DEFAULT '';
UPDATE shards SET origin = COALESCE((SELECT value FROM meta WHERE name = 'cache_id'), '') WHERE side = 'local' OR removed = 1;
-- Moves were those of caches on the way; they are a pusher's own from here on.
UPDATE shards SET moves = 0;
