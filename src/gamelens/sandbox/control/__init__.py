"""The control API of the sandbox, for developers, on loopback only.

Never part of the two services, which do not know it. Open `control_app` first.
"""
