-- Why: each child has one id, that which it came with last, and links has it. A row for every id that a child ever came with let one certificate
-- fill the disk, and nobody could end it.
DROP TABLE children;
