-- Every line of every order, out of the outbox; an order without lines has none.
-- dialect: athena
SELECT
  e.customer_id,
  e.order_id,
  CAST(i['product_id'] AS integer)      AS product_id,
  CAST(i['quantity'] AS decimal(6, 2))   AS quantity,
  CAST(i['unit_price'] AS decimal(6, 2)) AS unit_price,
  CAST(i['discount'] AS decimal(6, 2))   AS discount
FROM datalake.cdc_events AS e
CROSS JOIN UNNEST(CAST(json_parse(e.order_items) AS array(map(varchar, varchar)))) AS u (i)
ORDER BY e.order_id, product_id
