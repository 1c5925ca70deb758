-- The key is checked at the end of the transaction, so one statement can exchange two rows.
CREATE TABLE berths (
  id int PRIMARY KEY DEFERRABLE INITIALLY DEFERRED,
  swimmer text NOT NULL
);
-- `before` is complete: what a repair needs.
ALTER TABLE berths REPLICA IDENTITY FULL;
INSERT INTO berths VALUES (1, 'Ada'), (2, 'Bo'), (3, 'Cleo');
-- The connector starts here.
UPDATE berths SET id = 3 - id WHERE id IN (1, 2);
UPDATE berths SET swimmer = 'Cleo C.' WHERE id = 3;
