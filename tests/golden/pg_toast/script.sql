CREATE TABLE articles (
  id int PRIMARY KEY,
  title text NOT NULL,
  body text
);
-- Out of line and not compressed: more than about 2,000 bytes go to the TOAST table.
ALTER TABLE articles ALTER COLUMN body SET STORAGE EXTERNAL;
INSERT INTO articles SELECT n, 'title ' || n, n || repeat('.', 2400) FROM generate_series(1, 3) AS n;
-- The connector starts here.
-- The body is not touched and not sent.
UPDATE articles SET title = 'changed once' WHERE id = 1;
UPDATE articles SET title = 'changed twice' WHERE id = 1;
-- A row of the stream, the same.
INSERT INTO articles VALUES (4, 'title 4', '4' || repeat('-', 2400));
UPDATE articles SET title = 'title 4, changed' WHERE id = 4;
-- Really NULL, and then unsent no more.
UPDATE articles SET body = NULL WHERE id = 3;
UPDATE articles SET title = 'without a body' WHERE id = 3;
-- The key changes and the body is not sent with it; then the body changes.
UPDATE articles SET id = 20 WHERE id = 2;
UPDATE articles SET title = 'moved' WHERE id = 20;
UPDATE articles SET body = 'B' || repeat('=', 2400) WHERE id = 20;
UPDATE articles SET title = 'moved and changed' WHERE id = 20;
-- Deleted and born again: the old body must not come back.
DELETE FROM articles WHERE id = 4;
INSERT INTO articles VALUES (4, 'second life', NULL);
