# SPDX-License-Identifier: GPL-2.0
"""The paper's figures and the bars: measure, reduce, plot, show."""

import json
import os
import sys
from pathlib import Path

REPO = Path(__file__).resolve().parents[3]
CONFIGS = ("disabled", "available", "used")


class Trouble(Exception):
    """What went wrong, and what to do about it."""


def say(text):
    print(f"{Path(sys.argv[0]).name}: {text}", file=sys.stderr, flush=True)


def load(path):
    with open(path, encoding="utf-8") as source:
        return json.load(source)


def store(path, text):
    """All of it or nothing, so that no reader meets half a file."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    part.write_text(text, encoding="utf-8")
    os.replace(part, path)


def store_json(path, value):
    store(path, json.dumps(value, indent=1) + "\n")
