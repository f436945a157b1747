-- Why: shards push over connections of their own. Two processes of one shard are told apart by their incarnations, and what a
-- shard holds of one type (a slice) is stated as a whole: both must outlast a restart, in step with the objects. What a slice
-- holds is counted here, so that freshness can be told without reading every key. `meta` gets cache_id with the next start.

-- removed: 1 keeps every incarnation up to this one out.
CREATE TABLE shards (shard TEXT PRIMARY KEY, incarnation INTEGER NOT NULL, removed INTEGER NOT NULL) STRICT, WITHOUT ROWID;

-- bytes: of bodies. stated: the incarnation that stated the slice in full and told all changes since, 0 when none has.
-- synced: 1 when it was ever stated in full.
CREATE TABLE slices (
  shard TEXT NOT NULL,
  resource INTEGER NOT NULL,
  objects INTEGER NOT NULL,
  bytes INTEGER NOT NULL,
  changed_ms INTEGER NOT NULL,
  stated INTEGER NOT NULL,
  synced INTEGER NOT NULL,
  PRIMARY KEY (shard, resource)
) STRICT, WITHOUT ROWID;

-- When the newest object of a slice was written is known to the minute.
INSERT INTO slices (shard, resource, objects, bytes, changed_ms, stated, synced)
SELECT shard, resource, objects, bytes,
       coalesce((SELECT at_ms FROM moments AS m WHERE m.revision <= newest ORDER BY m.revision DESC LIMIT 1), 0), 0, 0
FROM (
  SELECT o.shard, o.resource, count(*) AS objects, sum(length(c.body)) AS bytes, max(o.revision) AS newest
  FROM objects AS o JOIN changes AS c ON c.revision = o.revision
  GROUP BY o.shard, o.resource
);
