"""The state directory of a sandbox: its lock, its users, its tenants and its clock.

The part never touches an event. Open `state_directory` first.
"""
