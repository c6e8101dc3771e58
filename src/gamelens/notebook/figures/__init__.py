"""Parts that every figure shares: frame, theme, colours, captions, alternative texts and pictures.

Never draws a figure of its own. Open `figure_frame` first.
"""
