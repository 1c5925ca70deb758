CREATE TABLE stock (
  sku varchar(10) PRIMARY KEY,
  pieces int NOT NULL,
  note varchar(40)
);
INSERT INTO stock VALUES ('a', 1, 'first'), ('b', 2, 'first'), ('c', 3, 'first');
-- The connector starts here.
UPDATE stock SET pieces = 10 WHERE sku = 'a';
INSERT INTO stock VALUES ('d', 4, 'first');
TRUNCATE TABLE stock;
-- The same keys again, one of them left out, one with a NULL where a value was.
INSERT INTO stock VALUES ('a', 100, NULL), ('b', 200, 'second');
UPDATE stock SET note = 'second, changed' WHERE sku = 'b';
DELETE FROM stock WHERE sku = 'a';
TRUNCATE TABLE stock;
-- After the second time: a and c live, b and d do not.
INSERT INTO stock VALUES ('c', 300, 'third');
INSERT INTO stock VALUES ('a', 400, 'third');
UPDATE stock SET pieces = pieces + 1;
