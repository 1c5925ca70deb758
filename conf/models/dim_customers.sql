SELECT
  customerNumber                  AS customer_key,
  customerName                    AS customer_name,
  contactLastName                 AS customer_last_name,
  contactFirstName                AS customer_first_name,
  phone,
  addressLine1                    AS address_line_1,
  addressLine2                    AS address_line_2,
  postalCode                      AS postal_code,
  city,
  state,
  country,
  creditLimit                     AS creditlimit,
  timestamp_millis(_source_ts_ms) AS updated_at
FROM {customers}
