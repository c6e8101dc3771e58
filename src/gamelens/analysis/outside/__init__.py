"""Data from elsewhere beside the service's: read without guessing, joined without losing or doubling a row.

`tables` reads a file or frame (`delimited`, `spreadsheets`), `days`, `amounts` and `measures` say what its cells mean.
`keys`, `buckets` and `sides` bring both sides to the same keys, `matching` says what found no partner, `cautions` what
to beware of. What is ambiguous is refused with the argument that settles it. Open `joining` first.
"""
