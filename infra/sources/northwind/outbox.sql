-- The outbox: one row per order with all that belongs to it, rebuilt whenever the order or one of its lines is written.
--
-- Its row follows: the order, its lines, its employee, its shipper or the lack of one, lines that move to another order.
-- Its row does not follow: what changes in customers, employees, shippers and products alone (the next write to the order
-- brings it), and deletes, unless outbox_deletes.sql is loaded too. An order without a customer gets no row.

CREATE TABLE cdc_events (
  order_id      smallint PRIMARY KEY,
  customer_id   bpchar NOT NULL,
  order_date    date,
  required_date date,
  shipped_date  date,
  order_items   jsonb, -- [{product_id, unit_price, quantity, discount}] by product_id; NULL while there are no lines
  products      jsonb, -- in the same order: product, supplier and category in one object
  customer      jsonb,
  employee      jsonb, -- with territories[], each with its region
  shipper       jsonb,
  shipment      jsonb,
  updated_at    timestamptz -- start of the transaction
);

-- The outbox only: an UPDATE of a published table that has neither a key nor a replica identity would be refused. Before
-- the first row, so that a connector that is at work already gets them all; one that is there is kept, since it would not
-- find a publication that was made anew.
DO $$
BEGIN
  IF EXISTS (SELECT FROM pg_publication WHERE pubname = 'cdc_publication') THEN
    ALTER PUBLICATION cdc_publication SET TABLE cdc_events;
  ELSE
    CREATE PUBLICATION cdc_publication FOR TABLE cdc_events;
  END IF;
END
$$;

CREATE VIEW order_documents AS
SELECT
  o.order_id,
  o.customer_id,
  o.order_date,
  o.required_date,
  o.shipped_date,
  lines.order_items,
  lines.products,
  to_jsonb(c) AS customer,
  to_jsonb(e) || jsonb_build_object('territories', coalesce(served.territories, '[]')) AS employee,
  to_jsonb(s) AS shipper,
  jsonb_build_object(
    'freight', o.freight,
    'ship_name', o.ship_name,
    'ship_address', o.ship_address,
    'ship_city', o.ship_city,
    'ship_region', o.ship_region,
    'ship_postal_code', o.ship_postal_code,
    'ship_country', o.ship_country
  ) AS shipment
FROM orders AS o
INNER JOIN customers AS c ON c.customer_id = o.customer_id
LEFT JOIN employees AS e ON e.employee_id = o.employee_id
LEFT JOIN shippers AS s ON s.shipper_id = o.ship_via
CROSS JOIN LATERAL (
  SELECT
    jsonb_agg(to_jsonb(d) - 'order_id' ORDER BY d.product_id) AS order_items,
    jsonb_agg(to_jsonb(p) || to_jsonb(u) || to_jsonb(k) ORDER BY d.product_id) AS products
  FROM order_details AS d
  INNER JOIN products AS p ON p.product_id = d.product_id
  LEFT JOIN suppliers AS u ON u.supplier_id = p.supplier_id
  LEFT JOIN categories AS k ON k.category_id = p.category_id
  WHERE d.order_id = o.order_id
) AS lines
CROSS JOIN LATERAL (
  SELECT jsonb_agg(to_jsonb(t) || to_jsonb(r) ORDER BY t.territory_id) AS territories
  FROM employee_territories AS w
  INNER JOIN territories AS t ON t.territory_id = w.territory_id
  INNER JOIN region AS r ON r.region_id = t.region_id
  WHERE w.employee_id = o.employee_id
) AS served;

-- Every column is written anew, the employee too, so that a change always has all values: large ones that an UPDATE leaves
-- alone would not be in it.
CREATE FUNCTION fn_refresh_order_event(which smallint) RETURNS void
LANGUAGE sql SET search_path FROM CURRENT AS $$
  INSERT INTO cdc_events
  SELECT d.*, now() FROM order_documents AS d WHERE d.order_id = which
  ON CONFLICT (order_id) DO UPDATE SET
    customer_id = excluded.customer_id,
    order_date = excluded.order_date,
    required_date = excluded.required_date,
    shipped_date = excluded.shipped_date,
    order_items = excluded.order_items,
    products = excluded.products,
    customer = excluded.customer,
    employee = excluded.employee,
    shipper = excluded.shipper,
    shipment = excluded.shipment,
    updated_at = excluded.updated_at
$$;

CREATE FUNCTION fn_insert_order_event() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  PERFORM fn_refresh_order_event(NEW.order_id);
  IF TG_OP = 'UPDATE' AND OLD.order_id <> NEW.order_id THEN
    PERFORM fn_refresh_order_event(OLD.order_id);
  END IF;
  RETURN NULL;
END
$$;

CREATE TRIGGER insert_order_event AFTER INSERT OR UPDATE ON orders
FOR EACH ROW EXECUTE FUNCTION fn_insert_order_event();

CREATE TRIGGER insert_order_event AFTER INSERT OR UPDATE ON order_details
FOR EACH ROW EXECUTE FUNCTION fn_insert_order_event();

CREATE PROCEDURE usp_init_order_events()
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  PERFORM fn_refresh_order_event(o.order_id) FROM orders AS o;
END
$$;

CALL usp_init_order_events();
