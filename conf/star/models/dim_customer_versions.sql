SELECT
  md5(to_json(array(CAST(customerNumber AS STRING), __START_AT))) AS customer_version_key,
  customerNumber                                                  AS customer_key,
  customerName                                                    AS customer_name,
  city,
  country,
  creditLimit                                                     AS credit_limit,
  -- what is first known of a customer holds for all that was before
  if(
    row_number() OVER (PARTITION BY customerNumber ORDER BY __START_AT) = 1, TIMESTAMP '1900-01-01', __START_TIME
  )                                                               AS valid_from,
  coalesce(__END_TIME, TIMESTAMP '9999-12-31')                    AS valid_to,
  __END_AT IS NULL                                                AS is_current
FROM {customers}
