# SPDX-License-Identifier: GPL-2.0
"""What make figures and make bars have in common: arguments, signals, errors."""

import argparse
import os
import shutil
import signal
from pathlib import Path

from . import REPO, Trouble, say
from .collect import FULL, QUICK, Machine


class Stopped(Exception):
    """A signal asked us to end."""


def parse(name, doc):
    par = argparse.ArgumentParser(
        prog=name, description=doc,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="exit codes: 0 fine, 1 error, 2 a bar was missed (bars)")
    add = par.add_argument
    add("--lane", default="6.12", help="kernel under test (6.12)")
    add("--output", type=Path, default=REPO / "out/figures", metavar="DIR",
        help="below out/, which the guest shares (out/figures)")
    add("--quick", action="store_true", help="small sizes: to see that it works")
    add("--cpus", type=int, default=min(4, os.cpu_count() or 1), metavar="N",
        help="most CPUs of figure 11 (those of this machine, 4 at most)")
    add("--resume", action="store_true",
        help="keep what was measured before, and measure what is missing")
    add("--icount", action="store_true",
        help="bars: only what is counted in instructions")
    add("--json", action="store_true", help="print JSON (bars)")
    opts = par.parse_args()
    opts.output = opts.output.absolute()
    if REPO / "out" not in opts.output.parents:
        par.error(f"{opts.output} is not below {REPO / 'out'}")
    return opts


def machine(opts):
    """The lane, with an empty raw folder unless it goes on."""
    raw = opts.output / "raw" / (opts.lane + ("-quick" if opts.quick else ""))
    if not opts.resume:
        shutil.rmtree(raw, ignore_errors=True)
    return Machine(opts.lane, opts.output, raw, opts.cpus), QUICK if opts.quick else FULL


def on_signal(number, _frame):
    raise Stopped(number)


def guarded(work):
    """Run; an error is one line, and a signal ends the machine as well."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, on_signal)
    try:
        return work()
    except Trouble as err:
        say(f"error: {err}")
        return 1
    except Stopped as err:
        say(f"ended by signal {err.args[0]}; what was measured is kept, "
            "go on with --resume")
        return 128 + err.args[0]
    except BrokenPipeError:
        return 128 + signal.SIGPIPE
    except OSError as err:
        say(f"error: {err}")
        return 1

