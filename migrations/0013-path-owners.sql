-- Why: an object may name any path as that of its logical cluster. The path entry of a logical
-- cluster without an owner decides that logical cluster's path. A query by path finds the logical
-- cluster through it, whoever else names the path.
-- owned: 1 if the path comes from the path entry.
-- named: the path that the newest object names, used once the entry is gone; '' for none.
ALTER TABLE paths ADD COLUMN owned INTEGER NOT NULL DEFAULT 0;
ALTER TABLE paths ADD COLUMN named TEXT NOT NULL DEFAULT '';
UPDATE paths SET named = path;
CREATE INDEX paths_owned ON paths (path, cluster) WHERE owned = 1;
