-- Why: every start begins an epoch, so that what a rollback of any kind took away is foreign, with no file beside the store that says so. A count
-- begins at the nonce of its epoch. Epochs of the old form go: theirs were seven digits before a revision of twelve, and a store that has
-- none begins one that covers everything it holds.
DELETE FROM epochs;
ALTER TABLE epochs ADD COLUMN nonce INTEGER NOT NULL DEFAULT 0;
DELETE FROM meta WHERE name IN ('nonce', 'previous_nonce');
