"""What libraries beside fcp are compared by: the work of both, timed in turns, and a table of how far
their numbers are apart and how long each took."""

import sys
import time

import numpy as np


class Timed:
    """What `work` gives, and the work itself, to be timed beside that of a peer."""

    rounds = 15

    def __init__(self, work, find=lambda result: result):
        self.work = work
        self.made = work()
        self.result = find(self.made)

    def beside(self, other):
        """Median processor times of both, in turns: other load does not count."""
        seconds = [], []
        for _ in range(self.rounds):
            for one, times in zip((self, other), seconds):
                start = time.process_time()
                one.work()
                times.append(time.process_time() - start)
        return [sorted(times)[len(times) // 2] for times in seconds]


class Table:
    def __init__(self):
        self.rows = []

    def add(self, method, peer, ours, theirs, difference, note=""):
        row = dict(method=method, peer=peer, fcp_seconds=ours, peer_seconds=theirs,
                   difference=difference, note=note)  # fmt: skip
        self.rows.append(row)
        print(
            f"| {method} | {peer} | {difference} | {1e3 * ours:.2f} | {1e3 * theirs:.2f} | "
            f"{theirs / ours:.1f} | {note} |",
            flush=True,
        )


def compare_numbers(table, method, peer, ours, theirs, note=""):
    gap = float(np.abs(ours.result - theirs.result).max() / np.abs(ours.result).max())
    if not gap <= 1e-6:
        sys.exit(f"{method}: fcp and {peer} differ by {gap} of the largest number")
    table.add(method, peer, *ours.beside(theirs), f"{gap:.0e}", note)
