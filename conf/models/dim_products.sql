SELECT
  p.productCode        AS product_key,
  p.productName        AS product_name,
  p.productLine        AS product_line,
  p.productScale       AS product_scale,
  p.productVendor      AS product_vendor,
  p.productDescription AS product_description,
  l.textDescription    AS product_line_description,
  timestamp_millis(greatest(p._source_ts_ms, l._source_ts_ms)) AS updated_at
FROM {products} AS p
INNER JOIN {productlines} AS l ON l.productLine = p.productLine
