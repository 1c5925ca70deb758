-- Zero dates are allowed as in old databases.
SET sql_mode = 'STRICT_TRANS_TABLES';
CREATE TABLE samples (
  id int PRIMARY KEY,
  price decimal(12,4),
  wide decimal(38,10),
  born date,
  never date,
  local datetime(6),
  coarse datetime,
  instant timestamp(3) NULL,
  big bigint unsigned,
  flag bit(1),
  flags bit(12),
  size enum('small','large'),
  document json,
  body blob
);
INSERT INTO samples VALUES
  (1, 12.5000, 1234567890123456789012345678.0123456789, '2024-02-29', '0000-00-00', '1969-12-31 23:59:59.999999',
   '2024-03-31 02:30:00', '2024-03-31 02:30:00.125', 18446744073709551615, b'1', b'101000000001', 'large',
   '{"n": 1.50, "s": "ä"}', x'00ff10');
-- The connector starts here.
-- All NULL.
INSERT INTO samples (id) VALUES (2);
-- The other ends, streamed.
INSERT INTO samples VALUES
  (3, -0.0001, -9999999999999999999999999999.9999999999, '1000-01-01', '0000-00-00', '9999-12-31 23:59:59.999999',
   '1000-01-01 00:00:00', '2038-01-19 03:14:07.999', 9223372036854775808, b'0', b'000000000000', 'small', '[]', '');
-- What came by snapshot, written again by the stream.
UPDATE samples SET body = x'fe', flags = b'111111111111', price = 99999999.9999 WHERE id = 1;
UPDATE samples SET instant = '2024-10-27 01:00:00.5', big = 9223372036854775807, size = 'small' WHERE id = 2;
