CREATE TABLE accounts (
  id int PRIMARY KEY,
  owner varchar(40) NOT NULL,
  balance decimal(10,2)
);
-- A key of two columns, of which one changes.
CREATE TABLE seats (
  hall varchar(10),
  seat int,
  guest varchar(40),
  PRIMARY KEY (hall, seat)
);
INSERT INTO accounts VALUES (1, 'Ada', 10.00), (2, 'Bo', 20.00);
INSERT INTO seats VALUES ('north', 1, 'Ada'), ('north', 2, 'Bo');
-- The connector starts here.
INSERT INTO accounts VALUES (10, 'Cleo', 30.00), (20, 'Dan', NULL);
-- One change of a key, and a change of a value with it.
UPDATE accounts SET id = 101, balance = 11.50 WHERE id = 1;
-- k1 -> k2 -> k1, each step a transaction.
UPDATE accounts SET id = 11 WHERE id = 10;
UPDATE accounts SET balance = 31.00 WHERE id = 11;
UPDATE accounts SET id = 10 WHERE id = 11;
-- The same within one transaction.
BEGIN;
UPDATE accounts SET id = 21 WHERE id = 20;
UPDATE accounts SET id = 20, balance = -0.01 WHERE id = 21;
COMMIT;
-- Another row takes the key that was given up.
UPDATE accounts SET id = 1 WHERE id = 2;
UPDATE seats SET seat = 3 WHERE hall = 'north' AND seat = 1;
UPDATE seats SET hall = 'south' WHERE guest = 'Bo';
INSERT INTO seats VALUES ('north', 2, 'Eve');
-- Moved and then gone.
UPDATE seats SET seat = 9 WHERE guest = 'Ada';
DELETE FROM seats WHERE guest = 'Ada';
