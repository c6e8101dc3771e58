"""The shape of a table: days that are headers, measures that are rows, lists in a cell, tables below each other."""
