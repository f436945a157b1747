-- Why: a pusher's number comes from the cache that it comes to, and is one higher at each cache, so moves are no longer counted. Which process
-- it was given to is kept with it: only that one may come back with it.
ALTER TABLE shards DROP COLUMN moves;
ALTER TABLE shards RENAME COLUMN incarnation TO term;
ALTER TABLE shards ADD COLUMN process TEXT NOT NULL DEFAULT '';
