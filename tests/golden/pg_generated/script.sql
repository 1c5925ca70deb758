CREATE TABLE lines (
  id int PRIMARY KEY,
  units int NOT NULL,
  price numeric(10,2) NOT NULL,
  note text,
  total numeric(12,2) GENERATED ALWAYS AS (units * price) STORED
);
INSERT INTO lines (id, units, price, note) VALUES (1, 3, 4.50, 'a'), (2, 1, 10.00, 'b'), (3, 0, 7.25, NULL), (4, 2, 1.10, 'd');
-- The connector starts here.
-- The total stays what the snapshot said: nothing that it is computed from changes.
UPDATE lines SET note = 'changed' WHERE id = 1;
UPDATE lines SET note = NULL WHERE id = 1;
UPDATE lines SET note = 'was NULL' WHERE id = 3;
-- Its row takes the total along to another key.
UPDATE lines SET id = 20 WHERE id = 2;
UPDATE lines SET note = 'moved' WHERE id = 20;
DELETE FROM lines WHERE id = 4;
