-- Why: an object may name any path as that of its logical cluster. A path entry of a logical cluster without an owner has the say on that one's path,
-- and is found by it, whoever else names it. owned: 1 when the path is its own. named: what the newest object there names, to go back to; '' for nothing.
ALTER TABLE paths ADD COLUMN owned INTEGER NOT NULL DEFAULT 0;
ALTER TABLE paths ADD COLUMN named TEXT NOT NULL DEFAULT '';
UPDATE paths SET named = path;
CREATE INDEX paths_owned ON paths (path, cluster) WHERE owned = 1;
