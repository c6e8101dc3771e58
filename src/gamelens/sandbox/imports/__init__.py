"""Imports: raw events that the service has exported, taken into the lake.

The part never talks to the service and stores no address. Open `import_run` first.
"""
