-- Why: shards push over their own connections. An incarnation tells two processes of one shard
-- apart. A pusher states a slice, the objects of one type of a shard, as a whole. Both must survive
-- a restart and agree with the objects. The counts of each slice are stored here, so that freshness
-- needs no read of every key. The next start adds cache_id to `meta`.

-- removed: 1 refuses every incarnation up to this one.
CREATE TABLE shards (shard TEXT PRIMARY KEY, incarnation INTEGER NOT NULL, removed INTEGER NOT NULL) STRICT, WITHOUT ROWID;

-- bytes: of bodies.
-- stated: the incarnation that stated the slice in full and has sent all changes since, 0 if none
-- has.
-- synced: 1 if the slice was ever stated in full.
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

-- The time of a slice's newest object is known to the minute.
INSERT INTO slices (shard, resource, objects, bytes, changed_ms, stated, synced)
SELECT shard, resource, objects, bytes,
       coalesce((SELECT at_ms FROM moments AS m WHERE m.revision <= newest ORDER BY m.revision DESC LIMIT 1), 0), 0, 0
FROM (
  SELECT o.shard, o.resource, count(*) AS objects, sum(length(c.body)) AS bytes, max(o.revision) AS newest
  FROM objects AS o JOIN changes AS c ON c.revision = o.revision
  GROUP BY o.shard, o.resource
);
