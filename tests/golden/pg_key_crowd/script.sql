-- Keys are checked at the end of the transaction, and rows may look the same.
CREATE TABLE benches (
  id int PRIMARY KEY DEFERRABLE INITIALLY DEFERRED,
  guest text,
  seats int
);
ALTER TABLE benches REPLICA IDENTITY FULL;
-- Keys are checked at once; `before` is filler.
CREATE TABLE stools (
  id int PRIMARY KEY,
  guest text
);
INSERT INTO benches VALUES (1, 'Ada', 2), (2, 'Ada', 2), (3, 'Ada', 2), (6, 'Bo', 1), (8, '', 0), (9, NULL, NULL);
INSERT INTO stools VALUES (1, 'Ada'), (2, 'Bo');
-- The connector starts here.
-- Three rows that look the same, one key up; the last of them frees 1 and makes 4.
UPDATE benches SET id = id + 1 WHERE id <= 3;
-- Written on its way.
BEGIN;
UPDATE benches SET id = 7 WHERE id = 6;
UPDATE benches SET guest = 'Bo, moved' WHERE id = 7;
UPDATE benches SET id = 5 WHERE id = 7;
COMMIT;
-- Rows of nothing but what PostgreSQL fills in where it does not know.
UPDATE benches SET id = 17 - id WHERE id IN (8, 9);
-- Twice in one transaction, so that each is where it was.
BEGIN;
UPDATE benches SET id = 9 - id WHERE id IN (4, 5);
UPDATE benches SET id = 9 - id WHERE id IN (4, 5);
COMMIT;
TRUNCATE stools;
INSERT INTO stools VALUES (1, 'Cleo');
-- Through the key of a row that the truncate took.
BEGIN;
UPDATE stools SET id = 2 WHERE id = 1;
UPDATE stools SET id = 3 WHERE id = 2;
COMMIT;
