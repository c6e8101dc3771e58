"""Questions that ask a service and analyse its answers: the health board, the period before.

`client` asks and never analyses, `analysis` analyses and never asks; what needs both stands here, above the two. Never
draws. Open `health_check` first.
"""
