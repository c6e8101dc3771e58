"""Retention in closed form: the BG/BB model, its fit and its integrals.

The part never draws a random number. Open `bgbb` first.
"""
