-- Why: every start begins an epoch, so that the resourceVersions that any kind of rollback took
-- away are foreign. This needs no file beside the store. A count begins at the nonce of its epoch.
-- Epochs of the old form are deleted: they had seven digits, before a revision of twelve. A store
-- without epochs begins one that covers all that it holds.
DELETE FROM epochs;
ALTER TABLE epochs ADD COLUMN nonce INTEGER NOT NULL DEFAULT 0;
DELETE FROM meta WHERE name IN ('nonce', 'previous_nonce');
