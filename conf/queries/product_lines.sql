-- What each product line sold, and what was earned by it.
SELECT
  p.product_line,
  count(DISTINCT f.order_key)                 AS orders,
  sum(f.quantity_ordered)                     AS quantity,
  sum(f.quantity_ordered * f.product_price)   AS sales,
  sum(f.profit)                               AS profit
FROM fact_orders AS f
INNER JOIN dim_products AS p ON p.product_key = f.product_key
GROUP BY p.product_line
ORDER BY profit DESC, p.product_line
