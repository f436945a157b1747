-- Why: the first schema of the store. The change log has the only copy of each body. `objects` is a
-- small index from a key to the revision that holds it. So each body is written once, and a list at
-- an older revision is possible.

-- One value for each fact about this store's life: nonce, previous_nonce, revision, compacted,
-- tombstones_from, superseded_bytes.
CREATE TABLE meta (name TEXT PRIMARY KEY, value ANY NOT NULL) STRICT, WITHOUT ROWID;

-- A resourceVersion is an epoch followed by a revision. A new epoch begins where history may have
-- been rolled back.
CREATE TABLE epochs (epoch INTEGER PRIMARY KEY, first_revision INTEGER NOT NULL) STRICT;

CREATE TABLE resources (
  id INTEGER PRIMARY KEY,
  api_group TEXT NOT NULL,
  resource TEXT NOT NULL,
  identity TEXT NOT NULL,
  UNIQUE (api_group, resource, identity)
) STRICT;

-- kind: 1 put, 2 delete.
-- replaced: the revision that held the key before, 0 if there was none.
-- A delete has no body: the row that it replaced has it. Once both are compacted, the delete stays
-- as a tombstone.
CREATE TABLE changes (
  revision INTEGER PRIMARY KEY,
  resource INTEGER NOT NULL,
  kind INTEGER NOT NULL,
  replaced INTEGER NOT NULL,
  shard TEXT NOT NULL,
  cluster TEXT NOT NULL,
  namespace TEXT NOT NULL,
  name TEXT NOT NULL,
  version TEXT NOT NULL,
  metadata_start INTEGER NOT NULL,
  metadata_end INTEGER NOT NULL,
  annotations_at INTEGER NOT NULL,
  revision_at INTEGER NOT NULL,
  body BLOB
) STRICT;
CREATE INDEX changes_by_resource ON changes (resource, revision);
CREATE INDEX changes_tombstones ON changes (revision) WHERE kind = 2;

CREATE TABLE objects (
  resource INTEGER NOT NULL,
  shard TEXT NOT NULL,
  cluster TEXT NOT NULL,
  namespace TEXT NOT NULL,
  name TEXT NOT NULL,
  revision INTEGER NOT NULL,
  PRIMARY KEY (resource, shard, cluster, namespace, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX objects_by_cluster ON objects (cluster, resource, namespace, name, shard);

-- The canonical path of a logical cluster on a shard, from the newest object with the annotation
-- kcp.io/path.
CREATE TABLE paths (
  shard TEXT NOT NULL,
  cluster TEXT NOT NULL,
  path TEXT NOT NULL,
  PRIMARY KEY (shard, cluster)
) STRICT, WITHOUT ROWID;
CREATE INDEX paths_by_path ON paths (path, cluster);

-- When a revision was reached, at most one row a minute. The compactor finds old revisions by it.
CREATE TABLE moments (revision INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL) STRICT;
