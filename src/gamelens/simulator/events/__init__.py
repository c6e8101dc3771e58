"""The actions of players as events and request bodies.

Never decides what a player does. Open `event_json` first.
"""
