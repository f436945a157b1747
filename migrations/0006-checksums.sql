-- Why: a disk that turned a bit had it served. Every row of the log carries checksums now (change-row.ts), which whoever reads it compares. They stand
-- before the body, so that a reader of keys need not walk through it; a column cannot be put there, so the table is written anew.
-- The functions come from change-row.ts and migrate.ts.

-- kind: 1 put, 2 delete. replaced: the revision that held the key before, 0 when none did.
-- checksum: of the columns before it. body_checksum: of version, the four places and the body, begun with `checksum`; 0 where there is no body.
-- born: of a delete above the compacted revision the life it ended; 0 of everything else.
-- A delete has no body: the row it replaced has it, until both are compacted and the delete stays as a tombstone.
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
-- A body that was damaged before has got checksums that say it is sound. Of what is current the digest, which is older, tells.
SELECT count(confirm_digest(o.digest_high, o.digest_low, c.version, c.body, o.cluster, o.namespace, o.name))
FROM objects AS o JOIN changes AS c ON c.revision = o.revision;
DROP TABLE changes;
ALTER TABLE checked_changes RENAME TO changes;

CREATE INDEX changes_by_resource ON changes (resource, revision);
CREATE INDEX changes_tombstones ON changes (revision) WHERE kind = 2;
-- What was deleted since a revision (0004-lives.sql).
CREATE INDEX changes_ended ON changes (revision >> 13, resource, shard, cluster, namespace, name, born) WHERE born > 0;
CREATE INDEX changes_ended_by_cluster ON changes (revision >> 13, cluster, resource, namespace, name, shard, born) WHERE born > 0;
CREATE INDEX changes_ended_lives ON changes (revision >> 13, born) WHERE born > 0;
