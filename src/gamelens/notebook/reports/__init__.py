"""A notebook as one HTML page.

Never asks a service itself: the notebook does. Open `report` first.
"""
