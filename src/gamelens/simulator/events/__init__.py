"""The actions of players as events and request bodies.

The part never decides what a player does. Open `event_json` first.
"""
