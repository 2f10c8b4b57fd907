# SPDX-License-Identifier: GPL-2.0
"""TAP, and the command brumm, for tests of the memcached study."""

import json
import subprocess
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
BRUMM = TOP / "build/user/brumm"


class Tap:
    """Results, one a line."""
    count = failed = 0

    def ok(self, good, what, why=""):
        self.count += 1
        if not good:
            self.failed += 1
            for line in str(why).splitlines()[-30:]:
                print(f"# {line}")
        print(f"{'' if good else 'not '}ok {self.count} - {what}", flush=True)
        return good

    def end(self):
        print(f"1..{self.count}")
        sys.exit(1 if self.failed else 0)


def mc(*args, code=0):
    """Runs brumm mc; (did it exit with @code, its output, its messages)."""
    done = subprocess.run([BRUMM, "mc", *map(str, args)], text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    why = f"exit code {done.returncode}, not {code}\n{done.stdout[-2000:]}{done.stderr}"
    return done.returncode == code, done.stdout, why


def refuse(token):
    raise ValueError(f"{token} in JSON")


def strict(text):
    """JSON without what JSON does not have."""
    return json.loads(text, parse_constant=refuse)


def store(path, doc):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(doc if isinstance(doc, str) else json.dumps(doc), encoding="utf-8")
    return path


def near(a, b, error=1e-9):
    return a is not None and abs(a - b) <= error * max(abs(a), abs(b), 1e-300)
