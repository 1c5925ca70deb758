CREATE TABLE parts (
  id int PRIMARY KEY,
  amount int,
  price decimal(8,2),
  colour varchar(20)
);
INSERT INTO parts VALUES (1, 10, 1.50, 'red'), (2, 20, 2.50, 'green');
-- The connector starts here.
INSERT INTO parts VALUES (3, 2147483647, 999999.99, 'blue');
-- A column with a default. The server fills it everywhere and sends no rows: each row is written once to be told.
ALTER TABLE parts ADD COLUMN grade int NOT NULL DEFAULT 7;
UPDATE parts SET grade = 8 WHERE id = 1;
UPDATE parts SET grade = 9 WHERE id IN (2, 3);
-- int -> bigint and decimal(8,2) -> decimal(14,4): row 2 keeps the bytes of the old types.
ALTER TABLE parts MODIFY amount bigint, MODIFY price decimal(14,4);
UPDATE parts SET amount = 9007199254740993, price = 1234567890.1234 WHERE id = 3;
INSERT INTO parts VALUES (4, -2147483649, 0.0001, 'black', 1);
-- A dropped column: the last of its values that were sent stay in silver, and no row knows a newer one.
ALTER TABLE parts DROP COLUMN colour;
UPDATE parts SET amount = 11 WHERE id = 1;
DELETE FROM parts WHERE id = 4;
INSERT INTO parts VALUES (5, 50, 5.5, DEFAULT);
