CREATE TABLE lanes (
  id int PRIMARY KEY,
  swimmer varchar(40) NOT NULL,
  laps int NOT NULL
);
INSERT INTO lanes VALUES (1, 'Ada', 0), (2, 'Bo', 0), (3, 'Cleo', 0);
-- The connector starts here.
-- Two rows exchange their keys through a third one: MariaDB checks keys row by row.
BEGIN;
UPDATE lanes SET id = 99 WHERE id = 1;
UPDATE lanes SET id = 1 WHERE id = 2;
UPDATE lanes SET id = 2 WHERE id = 99;
COMMIT;
UPDATE lanes SET laps = laps + 1;
-- Three rows in a circle, in two statements: the order of the rows is the server's.
BEGIN;
UPDATE lanes SET id = -id WHERE id IN (1, 2, 3);
UPDATE lanes SET id = CASE id WHEN -1 THEN 2 WHEN -2 THEN 3 ELSE 1 END WHERE id < 0;
COMMIT;
-- A new row arrives under the key that the exchange used.
INSERT INTO lanes VALUES (99, 'Dan', 5);
