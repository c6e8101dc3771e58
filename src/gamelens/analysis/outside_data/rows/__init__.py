"""Which rows count: no totals, no repeated rows, nothing that was not spent or earned, no running totals."""
