CREATE TABLE chapters (
  id int PRIMARY KEY,
  title text NOT NULL,
  body text
);
ALTER TABLE chapters ALTER COLUMN body SET STORAGE EXTERNAL;
INSERT INTO chapters VALUES (1, 'one', 'a' || repeat('.', 2400)), (2, 'two', 'b' || repeat('.', 2400));
-- The connector starts here.
-- The only record that has the body has the old key.
UPDATE chapters SET id = 10 WHERE id = 1;
UPDATE chapters SET title = 'moved' WHERE id = 10;
-- Through two keys, in one transaction.
BEGIN;
UPDATE chapters SET id = 20 WHERE id = 2;
UPDATE chapters SET id = 30 WHERE id = 20;
COMMIT;
