"""The words of headers and lines, in the languages that vendors write: measures, totals, taxes, units of money."""
