"""Checks of the setup, of a metrics service and of a collector: the findings of `gamelens doctor`."""
