SELECT
  c.customer_key,
  d.date_key,
  d.full_date AS month_end,
  c.customer_version_key,
  c.credit_limit
FROM {customers} AS c
INNER JOIN {dates} AS d
  ON d.is_month_end AND c.valid_from < date_add(d.full_date, 1) AND date_add(d.full_date, 1) <= c.valid_to
WHERE d.full_date BETWEEN (SELECT min(orderDate) FROM {orders}) AND (SELECT last_day(max(orderDate)) FROM {orders})
