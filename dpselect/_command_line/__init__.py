"""What ``python -m dpselect`` is made of: arguments, schema, table, release, report."""
