"""HTTP for all surfaces of the sandbox: bytes in and bytes out, within bounds.

Never interprets an event or a metric. Open `request_body` first.
"""
