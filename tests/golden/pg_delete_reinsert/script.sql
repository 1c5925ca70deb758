CREATE TABLE slots (
  id int PRIMARY KEY,
  life int NOT NULL,
  note text
);
INSERT INTO slots VALUES (1, 0, 'snapshot'), (2, 0, 'snapshot');
-- The connector starts here.
-- Four lives in one transaction: one commit time for all.
BEGIN;
DELETE FROM slots WHERE id = 1;
INSERT INTO slots VALUES (1, 1, 'first');
DELETE FROM slots WHERE id = 1;
INSERT INTO slots VALUES (1, 2, 'second');
UPDATE slots SET note = NULL WHERE id = 1;
DELETE FROM slots WHERE id = 1;
INSERT INTO slots VALUES (1, 3, 'third');
COMMIT;
-- What a savepoint takes back is never sent.
BEGIN;
DELETE FROM slots WHERE id = 2;
SAVEPOINT one;
INSERT INTO slots VALUES (2, 90, 'rolled back');
INSERT INTO slots VALUES (9, 90, 'rolled back');
ROLLBACK TO SAVEPOINT one;
INSERT INTO slots VALUES (2, 1, 'kept');
SAVEPOINT two;
DELETE FROM slots WHERE id = 2;
ROLLBACK TO SAVEPOINT two;
INSERT INTO slots VALUES (3, 1, 'kept');
COMMIT;
-- A whole transaction that never was.
BEGIN;
DELETE FROM slots;
ROLLBACK;
-- Ends with a delete.
BEGIN;
DELETE FROM slots WHERE id = 3;
INSERT INTO slots VALUES (3, 2, 'again');
DELETE FROM slots WHERE id = 3;
COMMIT;
