CREATE TABLE counters (
  id int PRIMARY KEY,
  hits int NOT NULL,
  note varchar(40)
);
INSERT INTO counters VALUES (1, 0, NULL);
-- The connector starts here.
-- The session's clock stands still: every event of the next statements has the same source.ts_ms.
SET timestamp = 1700000000;
UPDATE counters SET hits = 1 WHERE id = 1;
UPDATE counters SET hits = 2 WHERE id = 1;
UPDATE counters SET hits = 3 WHERE id = 1;
UPDATE counters SET hits = 4 WHERE id = 1;
UPDATE counters SET hits = 5, note = 'the fifth' WHERE id = 1;
-- Insert, delete and insert of one key in one transaction: no order of operations tells which was last.
BEGIN;
INSERT INTO counters VALUES (2, 1, 'first life');
DELETE FROM counters WHERE id = 2;
INSERT INTO counters VALUES (2, 2, 'second life');
COMMIT;
-- The other way round: it ends with a delete.
BEGIN;
INSERT INTO counters VALUES (3, 1, 'only life');
UPDATE counters SET hits = 2 WHERE id = 3;
DELETE FROM counters WHERE id = 3;
COMMIT;
-- One statement that takes a row twice.
INSERT INTO counters VALUES (2, 7, 'third life') ON DUPLICATE KEY UPDATE hits = hits + 7, note = 'still second';
REPLACE INTO counters VALUES (2, 8, 'replaced');
-- The clock is set back: what follows is newer and says that it is older.
SET timestamp = 1600000000;
UPDATE counters SET hits = 6 WHERE id = 1;
INSERT INTO counters VALUES (3, 9, 'born before it died');
