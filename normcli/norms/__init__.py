"""What a norm is: the table, its options, conventions, layouts, and a row resolved against a shape."""
