"""Files of the sandbox: the inbox of accepted events and the lake of processed ones.

Never interprets a metric and never changes a stored event. Open `inbox` first.
"""
