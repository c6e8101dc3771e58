"""Retention in closed form: the BG/BB model, its fit and its integrals.

Never draws a random number. Open `bgbb` first.
"""
