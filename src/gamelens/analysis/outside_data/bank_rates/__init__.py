"""Tables of exchange rates as banks write them, by columns and by rows."""
