-- Why: the cache that a pusher comes to gives it its number, which is one higher at each cache. So
-- moves are not counted. The process that got the number is stored with it, because only that
-- process may come back with it.
ALTER TABLE shards DROP COLUMN moves;
ALTER TABLE shards RENAME COLUMN incarnation TO term;
ALTER TABLE shards ADD COLUMN process TEXT NOT NULL DEFAULT '';
