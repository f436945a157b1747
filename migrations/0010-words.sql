-- Why: columns are called what the code and everything that it shows call them. synced_term: the term in which the slice was synced in full, 0 when none
-- has. ever_synced: 1 when it was ever. filter_hash: of what the link lets through that the slice comes over, while it is current; '' when it is not.
ALTER TABLE shards RENAME COLUMN side TO via;
ALTER TABLE links RENAME COLUMN side TO neighbour;
ALTER TABLE slices RENAME COLUMN stated TO synced_term;
ALTER TABLE slices RENAME COLUMN synced TO ever_synced;
ALTER TABLE slices RENAME COLUMN edge TO filter_hash;
