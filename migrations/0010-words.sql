-- Why: columns get the names that the code and all its output use.
-- synced_term: the term in which the slice was synced in full, 0 if none has.
-- ever_synced: 1 if it ever was.
-- filter_hash: the hash of what the link lets through that the slice comes over, while the slice is
-- current; '' while it is not.
ALTER TABLE shards RENAME COLUMN side TO via;
ALTER TABLE links RENAME COLUMN side TO neighbour;
ALTER TABLE slices RENAME COLUMN stated TO synced_term;
ALTER TABLE slices RENAME COLUMN synced TO ever_synced;
ALTER TABLE slices RENAME COLUMN edge TO filter_hash;
