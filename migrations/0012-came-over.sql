-- Why: when a cache stops accepting something over a link, it removes the objects that came over
-- that link, even from a stale slice.
-- came_over: the link that last brought something of the slice; '' for none. It is unknown for
-- slices that are already stale.
ALTER TABLE slices ADD COLUMN came_over TEXT NOT NULL DEFAULT '';
UPDATE slices SET came_over = coalesce((SELECT via FROM shards WHERE shards.shard = slices.shard), '') WHERE filter_hash <> '';
