-- Optional: the outbox follows deletes too. A deleted line leaves its order's row, a deleted order takes its row along.

CREATE FUNCTION fn_delete_order_event() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  PERFORM fn_refresh_order_event(OLD.order_id);
  DELETE FROM cdc_events AS e
  WHERE e.order_id = OLD.order_id AND NOT EXISTS (SELECT FROM orders AS o WHERE o.order_id = OLD.order_id);
  RETURN NULL;
END
$$;

CREATE TRIGGER delete_order_event AFTER DELETE OR UPDATE OF order_id ON orders
FOR EACH ROW EXECUTE FUNCTION fn_delete_order_event();

CREATE TRIGGER delete_order_event AFTER DELETE ON order_details
FOR EACH ROW EXECUTE FUNCTION fn_delete_order_event();
