-- Why: what came over a link goes when its end accepts it no longer, also where the slice is stale. came_over: the link that has brought something of the
-- slice last; '' for none. Of a slice that is stale already it is not known.
ALTER TABLE slices ADD COLUMN came_over TEXT NOT NULL DEFAULT '';
UPDATE slices SET came_over = coalesce((SELECT via FROM shards WHERE shards.shard = slices.shard), '') WHERE filter_hash <> '';
