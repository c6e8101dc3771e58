"""Every event that was really sent, and the truth of every metric computed from it.

The part never shares arithmetic with the sandbox. Open `ledger` first.
"""
