"""Into bronze: a stream's batches, what bronze holds of them, objects, what is masked, gaps that were passed over."""
