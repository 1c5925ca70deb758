CREATE TABLE orders (
  id int PRIMARY KEY,
  state text NOT NULL,
  total numeric(12,2) NOT NULL,
  placed timestamptz NOT NULL,
  express boolean
);
CREATE TABLE empty (
  id int PRIMARY KEY
);
INSERT INTO orders
  SELECT n, 'new', n * 1.25, timestamptz '2024-03-31 00:30:00+00' + n * interval '1 hour', n % 2 = 0
  FROM generate_series(1, 6) AS n;
-- Changed and deleted before the snapshot: only what is left is sent.
UPDATE orders SET state = 'paid' WHERE id = 1;
DELETE FROM orders WHERE id = 6;
-- The connector starts here.
-- A change of a row that the snapshot had: it is newer, whatever its position and time say.
UPDATE orders SET state = 'sent', total = 100.00 WHERE id = 1;
DELETE FROM orders WHERE id = 2;
UPDATE orders SET express = NULL WHERE id = 3;
-- The key that was gone before the snapshot, and the one that went after it.
INSERT INTO orders VALUES (6, 'second', 6.66, '1969-12-31 23:59:59.999999+00', true);
INSERT INTO orders VALUES (2, 'second', 2.22, '2024-10-27 01:30:00+02', false);
-- Older than the calendar that some file formats still count with.
INSERT INTO orders VALUES (7, 'very old', 0.00, '1066-10-14 12:00:00.000001+00', NULL);
-- A table that the snapshot found empty.
INSERT INTO empty VALUES (1);
DELETE FROM empty WHERE id = 1;
