"""What the numbers say: pure functions from the client's tidy frames to the frames an analyst shows.

Never asks a service, never draws, never changes the frame it is given. Every function keeps null groups, keeps NA where
a day has not come, and hands the receipt on. Open `retention` first.
"""
