-- Why: each child has one id, the one it came with last, and `links` has it. `children` had a row
-- for every id that a child ever came with. So one certificate could fill the disk, and nobody
-- could stop that.
DROP TABLE children;
