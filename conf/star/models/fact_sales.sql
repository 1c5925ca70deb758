SELECT
  d.orderNumber                                     AS order_key,
  d.productCode                                     AS product_key,
  CAST(date_format(o.orderDate, 'yyyyMMdd') AS INT) AS date_key,
  coalesce(c.customer_version_key, '-1')            AS customer_version_key,
  o.customerNumber                                  AS customer_key,
  o.status,
  d.quantityOrdered                                 AS quantity,
  CAST(d.quantityOrdered * d.priceEach AS DECIMAL(12,2)) AS amount
FROM {orderdetails} AS d
INNER JOIN {orders} AS o ON o.orderNumber = d.orderNumber
LEFT JOIN {customers} AS c
  ON c.customer_key = o.customerNumber AND c.valid_from <= o.orderDate AND o.orderDate < c.valid_to
