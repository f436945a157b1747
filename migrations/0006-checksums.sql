-- Why: when a disk flipped a bit, the store served it. Every row of the log gets checksums
-- (change-row.ts), which every reader verifies. They are stored before the body, so that a reader
-- of keys does not have to pass over it. SQLite cannot add a column there, so this writes the table
-- anew. change-row.ts and migrate.ts define the functions.

-- kind: 1 put, 2 delete.
-- replaced: the revision that held the key before, 0 if there was none.
-- checksum: of the columns before it.
-- body_checksum: of the version, the four places and the body, begun with `checksum`; 0 if there is
-- no body.
-- born: for a delete above the compacted revision, the life that it ended; 0 for all other rows.
-- A delete has no body: the row that it replaced has it. Once both are compacted, the delete stays
-- as a tombstone.
CREATE TABLE checked_changes (
  revision INTEGER PRIMARY KEY,
  resource INTEGER NOT NULL,
  kind INTEGER NOT NULL,
  replaced INTEGER NOT NULL,
  shard TEXT NOT NULL,
  cluster TEXT NOT NULL,
  namespace TEXT NOT NULL,
  name TEXT NOT NULL,
  checksum INTEGER NOT NULL,
  born INTEGER NOT NULL,
  version TEXT NOT NULL,
  metadata_start INTEGER NOT NULL,
  metadata_end INTEGER NOT NULL,
  annotations_at INTEGER NOT NULL,
  revision_at INTEGER NOT NULL,
  body_checksum INTEGER NOT NULL,
  body BLOB
) STRICT;
INSERT INTO checked_changes
SELECT revision, resource, kind, replaced, shard, cluster, namespace, name, checksum, born,
       version, metadata_start, metadata_end, annotations_at, revision_at,
       CASE kind WHEN 1 THEN body_checksum(checksum, version, body, metadata_start, metadata_end, annotations_at, revision_at) ELSE 0 END, body
FROM (SELECT *, row_checksum(revision, resource, kind, replaced, shard, cluster, namespace, name) AS checksum FROM changes ORDER BY revision);
-- The new checksums of a body that was already damaged are correct. For current objects, the older
-- digest reveals such damage.
SELECT count(confirm_digest(o.digest_high, o.digest_low, c.version, c.body, o.cluster, o.namespace, o.name))
FROM objects AS o JOIN changes AS c ON c.revision = o.revision;
DROP TABLE changes;
ALTER TABLE checked_changes RENAME TO changes;

CREATE INDEX changes_by_resource ON changes (resource, revision);
CREATE INDEX changes_tombstones ON changes (revision) WHERE kind = 2;
-- Deletes since a revision (0004-lives.sql).
CREATE INDEX changes_ended ON changes (revision >> 13, resource, shard, cluster, namespace, name, born) WHERE born > 0;
CREATE INDEX changes_ended_by_cluster ON changes (revision >> 13, cluster, resource, namespace, name, shard, born) WHERE born > 0;
CREATE INDEX changes_ended_lives ON changes (revision >> 13, born) WHERE born > 0;
