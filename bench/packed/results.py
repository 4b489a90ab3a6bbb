"""Results as they come: rows in JSON and a plain table, both written anew behind every step, so that who ends the program has what it had."""
import collections
import json
import os
import tempfile
import threading
import time

OUTCOMES = ("ok", "differs", "failed", "not run")


class Results:
    def __init__(self, folder, about):
        os.makedirs(folder, exist_ok=True)
        self.folder, self.about, self.rows, self.lock = folder, about, [], threading.Lock()
        self.began = time.time()
        self.write()

    def add(self, part, what, outcome, detail="", **figures):
        """`detail` is what the table shows behind a row; `figures` are for the JSON."""
        with self.lock:
            self.rows.append({"part": part, "what": what, "outcome": outcome, "detail": detail, "at": round(time.time() - self.began, 1), **figures})
            self.write()

    def write(self):
        self.replace("results.json", json.dumps({**self.about, "seconds": round(time.time() - self.began, 1), "rows": self.rows}, indent=1) + "\n")
        self.replace("results.txt", self.table())

    def replace(self, name, text):
        handle, path = tempfile.mkstemp(dir=self.folder)
        with os.fdopen(handle, "w") as file:
            file.write(text)
        os.chmod(path, 0o644)
        os.replace(path, os.path.join(self.folder, name))

    def counts(self, part):
        found = collections.Counter(row["outcome"] for row in self.rows if row["part"] == part)
        return ", ".join(f"{found[outcome]} {outcome}" for outcome in OUTCOMES if found[outcome])

    def table(self):
        """A line a part, then its rows; of correctness only those that say something."""
        lines = [f"{name}: {value}" for name, value in self.about.items() if isinstance(value, (str, int, float))]
        lines += [f"note: {note}" for note in self.about.get("notes", [])]
        width = max((len(row["what"]) for row in self.rows), default=0)
        for part in dict.fromkeys(row["part"] for row in self.rows):
            lines += ["", f"{part}: {self.counts(part)}"]
            lines += [f"  {row['what']:{width}}  {row['outcome']:8} {row['detail']}".rstrip() for row in self.rows
                      if row["part"] == part and (row["detail"] or row["outcome"] != "ok")]
        return "\n".join(lines) + "\n"

    def failed(self):
        return any(row["outcome"] == "failed" for row in self.rows)
