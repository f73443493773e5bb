"""What holds, with its figures."""

import time


class Report:
    """Rows of a table, and whether all hold."""

    def __init__(self):
        self.rows = []
        self.begin = time.monotonic()

    def add(self, what, figure, holds):
        """Notes something that is to hold."""
        row = ("ok" if holds else "FAILED", what, str(figure))
        self.rows.append(row)
        print(f"  {row[0]:6} {what}: {row[2]}", flush=True)

    def note(self, what, figure):
        """Notes a figure that nothing is claimed of."""
        self.rows.append(("", what, str(figure)))
        print(f"         {what}: {figure}", flush=True)

    def step(self, title):
        minutes, seconds = divmod(int(time.monotonic() - self.begin), 60)
        print(f"\n== {minutes}:{seconds:02d} {title}", flush=True)

    def failed(self):
        return [what for state, what, _ in self.rows if state == "FAILED"]

    def table(self):
        width = max(len(what) for _, what, _ in self.rows)
        return "\n".join(f"{state:6}  {what:{width}}  {figure}" for state, what, figure in self.rows)


def percentile(values, share):
    """The value below which that share of them is."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]
