-- Why: a list at an older revision followed every revision that a key ever had, and read every
-- delete since. This numbers the lives of a key. A life begins with a create and ends with a
-- delete. Its number is the revision of its create (`born`). One look into an index then finds what
-- was deleted since, in the order of keys, and what a key held that changes often.

-- born: for a delete above the compacted revision, the life that it ended; 0 for all other rows.
-- The column is behind the body, so it is never read for a put.
ALTER TABLE changes ADD COLUMN born INTEGER NOT NULL DEFAULT 0;

-- versions: how often the object has changed since it was born.
ALTER TABLE objects ADD COLUMN born INTEGER NOT NULL DEFAULT 0;
ALTER TABLE objects ADD COLUMN versions INTEGER NOT NULL DEFAULT 0;

-- One version in sixteen of a life has a row here, until it is compacted. From there, a reader
-- follows `replaced` for a few steps only.
CREATE TABLE milestones (revision INTEGER PRIMARY KEY, born INTEGER NOT NULL) STRICT;

-- The lives that are known. If a life began below the compacted revision, its oldest row counts as
-- its first.
CREATE TEMP TABLE lives AS
WITH RECURSIVE life (newest, revision, replaced, back) AS (
  SELECT c.revision, c.revision, c.replaced, 0 FROM changes AS c
  WHERE c.revision IN (SELECT revision FROM objects)
     OR (c.kind = 2 AND c.revision > coalesce((SELECT value FROM meta WHERE name = 'compacted'), 0))
  UNION ALL
  SELECT l.newest, c.revision, c.replaced, l.back + 1 FROM life AS l CROSS JOIN changes AS c ON c.revision = l.replaced
)
SELECT newest, revision, back FROM life;
CREATE INDEX temp.lives_by_newest ON lives (newest, revision);
UPDATE objects SET born = (SELECT min(l.revision) FROM lives AS l WHERE l.newest = objects.revision);
UPDATE changes SET born = (SELECT min(l.revision) FROM lives AS l WHERE l.newest = changes.revision)
WHERE kind = 2 AND revision > coalesce((SELECT value FROM meta WHERE name = 'compacted'), 0);
INSERT INTO milestones (revision, born)
SELECT l.revision, (SELECT min(first.revision) FROM lives AS first WHERE first.newest = l.newest) FROM lives AS l WHERE l.back > 0 AND l.back % 16 = 0;
DROP TABLE lives;

CREATE INDEX milestones_by_life ON milestones (born);

-- Deletes in the order of keys, in buckets of 8,192 revisions. A reader that needs the deletes
-- since a revision begins with the bucket of that revision.
CREATE INDEX changes_ended ON changes (revision >> 13, resource, shard, cluster, namespace, name, born) WHERE born > 0;
CREATE INDEX changes_ended_by_cluster ON changes (revision >> 13, cluster, resource, namespace, name, shard, born) WHERE born > 0;
-- Whether a bucket has deletes of lives that began before a revision. It has none where keys only
-- come and go.
CREATE INDEX changes_ended_lives ON changes (revision >> 13, born) WHERE born > 0;
