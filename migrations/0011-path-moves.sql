-- Why: a link asks which canonical path a logical cluster had on a shard at a revision. So a move
-- must be found by its shard and logical cluster, not by its revision alone.
CREATE TABLE moves (
  revision INTEGER PRIMARY KEY,
  shard TEXT NOT NULL,
  cluster TEXT NOT NULL,
  before TEXT NOT NULL,
  after TEXT NOT NULL
) STRICT;
INSERT INTO moves SELECT m.revision, c.shard, c.cluster, m.before, m.after FROM path_moves AS m JOIN changes AS c ON c.revision = m.revision;
DROP TABLE path_moves;
ALTER TABLE moves RENAME TO path_moves;
CREATE INDEX path_moves_by_place ON path_moves (shard, cluster, revision);
