CREATE TABLE guests (
  id int PRIMARY KEY,
  name text NOT NULL,
  room int,
  since date,
  paid numeric(10,2)
);
INSERT INTO guests VALUES (1, 'Ada', 101, '2024-01-01', 10.00), (2, 'Bo', NULL, NULL, NULL);
-- The connector starts here.
INSERT INTO guests VALUES (3, 'Cleo', 103, '2024-02-29', -0.05);
UPDATE guests SET room = 201, paid = 12.50 WHERE id = 1;
UPDATE guests SET room = NULL WHERE id = 1;
DELETE FROM guests WHERE id = 2;
DELETE FROM guests WHERE id = 3;
INSERT INTO guests VALUES (3, 'Cleo again', 104, NULL, 0.00);
-- A key change: a rewritten delete of the old key, an insert of the new one.
UPDATE guests SET id = 11 WHERE id = 1;
-- Insert, delete and insert in one transaction.
BEGIN;
INSERT INTO guests VALUES (4, 'Dan', 105, '1999-12-31', 99999999.99);
DELETE FROM guests WHERE id = 4;
INSERT INTO guests VALUES (4, 'Dan again', 106, '2000-01-01', 0.01);
COMMIT;
