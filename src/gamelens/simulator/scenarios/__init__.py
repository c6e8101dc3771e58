"""The description of a population, read from TOML and checked.

Never simulates. The scenarios that come with the package are in `shipped`. Open `scenario` first.
"""
