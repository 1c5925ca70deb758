"""What other engines and catalogs are told of a lake, and how they are asked."""
