CREATE TABLE shirts (
  id int PRIMARY KEY,
  size enum('small','large, very')
);
INSERT INTO shirts VALUES (1, 'large, very'), (2, 'small');
-- The connector starts here.
-- The same value by stream.
INSERT INTO shirts VALUES (3, 'large, very');
UPDATE shirts SET size = 'large, very' WHERE id = 2;
