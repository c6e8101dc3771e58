"""Checks of the setup, of a metrics service and of a collector.

Never changes anything: the findings are for `gamelens doctor`. Open `setup_checks` first.
"""
