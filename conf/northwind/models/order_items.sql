SELECT
  o.customer_id,
  o.order_id,
  o.item.product_id,
  o.order_date,
  o.company_name,
  o.item.unit_price,
  o.item.quantity,
  o.item.discount,
  CAST(o.item.quantity * o.item.unit_price * (1 - o.item.discount) AS DECIMAL(14,4)) AS revenue,
  o.updated_at
FROM (
  SELECT
    e.customer_id,
    e.order_id,
    e.order_date,
    e.updated_at,
    get_json_object(e.customer, '$.company_name') AS company_name,
    explode(from_json(
      e.order_items,
      'array<struct<product_id:int,unit_price:decimal(8,2),quantity:int,discount:decimal(4,2)>>'
    )) AS item
  FROM {cdc_events} AS e
) AS o
