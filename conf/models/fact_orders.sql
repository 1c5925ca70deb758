SELECT
  o.orderNumber                  AS order_key,
  CAST(d.orderLineNumber AS INT) AS order_line_key,
  o.customerNumber               AS customer_key,
  d.productCode                  AS product_key,
  o.orderDate                    AS order_date,
  o.requiredDate                 AS order_required_date,
  o.shippedDate                  AS order_shipped_date,
  d.quantityOrdered              AS quantity_ordered,
  d.priceEach                    AS product_price,
  CAST((d.priceEach - p.buyPrice) * d.quantityOrdered AS DECIMAL(12,2)) AS profit,
  timestamp_millis(greatest(o._source_ts_ms, d._source_ts_ms, p._source_ts_ms)) AS updated_at
FROM {orders} AS o
INNER JOIN {orderdetails} AS d ON d.orderNumber = o.orderNumber
INNER JOIN {products} AS p ON p.productCode = d.productCode
