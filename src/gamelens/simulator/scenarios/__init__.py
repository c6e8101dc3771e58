"""The description of a population, read from TOML and checked.

The part never simulates; the scenarios that come with the package are in `shipped`. Open `scenario` first.
"""
