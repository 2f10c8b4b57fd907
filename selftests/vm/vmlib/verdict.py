# SPDX-License-Identifier: GPL-2.0
"""From what the guest stated and logged to: fine, or why not."""

import fnmatch
import re
from pathlib import Path

from . import Trouble

VM_DIR = Path(__file__).resolve().parent.parent

# Taints that every run with our module has, or may have: out-of-tree, unsigned,
# and KUnit.
TAINT_EXPECTED = 1 << 12 | 1 << 13 | 1 << 18
TAINT_LETTERS = "GFSRMBUDAWCIOELKXTN"
CONTEXT_LINES = 40

ESCAPED = re.compile(r"\\x([0-9a-f]{2})")
# At an address in Code: the five-byte NOP of a static branch, or its jump.
PATCHED = re.compile(r"<0f> 1f 44 00 00\b|<e9> |<eb> ")
STRAY_INT3 = re.compile(r"\bint3: 0000\b")
FLAGS = re.compile(r" EFLAGS: ([0-9a-f]{8})\b")
# Of the flags of a CPU: bit 1 is always set, these never.
NO_FLAGS = 0xffc08028
PREFIX = re.compile(r"^(<\d+>)?(\[[^\]]{1,40}\]\s*)*")


class Patterns:
    """splats.deny and splats.allow."""

    def __init__(self, lane, folder=VM_DIR):
        self.deny = [self._compile(text, where)
                     for text, where in self._lines(folder / "splats.deny")]
        self.allow = []
        for text, where in self._lines(folder / "splats.allow"):
            fields = text.split(" ;; ")
            if len(fields) != 3 or not fields[2].strip():
                raise Trouble(f"{where}: want 'lanes ;; expression ;; reason'")
            if fnmatch.fnmatchcase(lane, fields[0]):
                self.allow.append(self._compile(fields[1], where))
        if not self.deny:
            raise Trouble(f"{folder}/splats.deny is empty")

    @staticmethod
    def _lines(path):
        try:
            for number, line in enumerate(path.read_text().splitlines(), 1):
                if line.strip() and not line.startswith("#"):
                    yield line, f"{path}:{number}"
        except OSError as err:
            raise Trouble(f"cannot read the splat patterns: {err}") from err

    @staticmethod
    def _compile(text, where):
        try:
            return re.compile(text)
        except re.error as err:
            raise Trouble(f"{where}: bad regular expression: {err}") from err

    def is_splat(self, line):
        text = PREFIX.sub("", line)
        return (any(p.search(text) for p in self.deny)
                and not any(p.search(text) for p in self.allow))

    def scan(self, lines):
        """Index of the first splat, or None."""
        return next((i for i, line in enumerate(lines) if self.is_splat(line)), None)


class Log:
    """The guest's own log channel: kernel log and leak reports."""

    def __init__(self, text):
        self.kmsg, self.leaks, self.lost, self.complete = [], [], 0, False
        section, seq = "", -1
        for line in text.splitlines():
            if line.startswith("@@"):
                section = line[2:].split()[0]
                self.complete = section == "end"
            elif section == "kmemleak":
                self.leaks.append(line)
            elif section == "kmsg" and not line.startswith(" "):
                seq = self._record(line, seq)

    def _record(self, line, last):
        head, _, text = line.partition(";")
        fields = head.split(",")
        try:
            seq, usec = int(fields[1]), int(fields[2])
        except (IndexError, ValueError):
            self.kmsg.append(line)
            return last
        self.lost += seq - last - 1
        # A record may hold several lines; the kernel escapes what separates them.
        text = ESCAPED.sub(lambda m: chr(int(m[1], 16)), text)
        stamp = f"[{usec // 1000000:5d}.{usec % 1000000:06d}]"
        self.kmsg += [f"{stamp} {part}" for part in text.split("\n")]
        return seq


def parse_result(text):
    """The statements as a dictionary; stages collect in a list."""
    said = {"stages": []}
    for line in text.replace("\r", "").splitlines():
        key, _, value = line.partition(" ")
        if key == "stage":
            said["stages"].append(value)
        elif key == "error":
            said.setdefault("error", value)
        else:
            said[key] = value
    return said


def taint_letters(taint):
    """The taint as the kernel abbreviates it."""
    return "".join(c for bit, c in enumerate(TAINT_LETTERS) if taint >> bit & 1 and bit)


class Verdict:
    """All reasons why a run is not fine."""

    def __init__(self, opts, lane, patterns, channels):
        self.said = parse_result(channels["result"].all())
        self.log = Log(channels["log"].all())
        self.console = channels["console"].all().replace("\r", "").splitlines()
        self.reasons, self.excerpt = [], []
        self._find_splat(patterns)
        if self.log.leaks:
            self.excerpt += self.log.leaks[:CONTEXT_LINES]
        if "end" in self.said:
            self._check_statements(opts, lane)

    def _find_splat(self, patterns):
        for source, lines in (("kernel log", self.log.kmsg), ("console", self.console)):
            at = patterns.scan(lines)
            if at is not None:
                # The headline of a WARN is the line below its cutting mark.
                tell = at + ("[ cut here ]" in lines[at] and at + 1 < len(lines))
                self.reasons.append(f"{source}: {PREFIX.sub('', lines[tell]).strip()}")
                self.excerpt += lines[max(at - 1, 0):at + CONTEXT_LINES]
                return

    def impossible_flags(self):
        """Whether the CPU that failed had flags that no CPU can have: QEMU lost them
        between a cmpxchg16b and an interrupt, and left an address there."""
        found = next(filter(None, map(FLAGS.search, self.excerpt)), None)
        flags = int(found[1], 16) if found else 2
        return bool(flags & NO_FLAGS) or not flags & 2

    def lost_race(self):
        """Whether all began with flags that do not exist, with a breakpoint in kernel
        text that nobody there knew of, or with a CPU that got no further than an
        instruction which is patched at run time. What patches it (static keys,
        tracepoints) looks like that on two emulated CPUs, when one of them keeps the
        translation of a breakpoint that is gone; tcg-single tells whether it was
        that."""
        if not self.reasons:
            return False
        if self.impossible_flags():
            return True
        at = next((i for i, line in enumerate(self.excerpt)
                   if "RIP: 0010:" in line and "+0x" in line), None)
        if at is None:
            return False
        if STRAY_INT3.search(self.reasons[0]):
            return True
        code = next((line for line in self.excerpt[at:] if " Code: " in line), "")
        return "soft lockup" in self.reasons[0] and bool(PATCHED.search(code))

    def show_dump(self):
        """What the guest logged when it was asked why it is late."""
        at = next((i for i, line in enumerate(self.console)
                   if "sysrq: Show Blocked State" in line), None)
        if at is not None and not self.excerpt:
            self.excerpt = self.console[at:at + 3 * CONTEXT_LINES]

    def _check_statements(self, opts, lane):
        said, fail = self.said, self.reasons.append
        if "insmod_failed" in said:
            fail(f"the module was refused: {said['insmod_failed']}")
            self.excerpt += self.log.kmsg[-10:]
        if "rmmod_failed" in said:
            fail(f"the module could not be removed: {said['rmmod_failed']}")
        self._check_taint(opts)
        for key in ("warn_count", "oops_count"):
            if said.get(key, "0") != "0":
                fail(f"{key} is {said[key]}")
        if said.get("debug_locks", "1") != "1":
            fail("lockdep has turned itself off (debug_locks is 0)")
        elif lane.debug and "debug_locks" not in said:
            fail("a debug kernel without lockdep (no debug_locks)")
        for when in ("loaded", "removed"):
            if said.get(f"kmemleak_{when}", "0") != "0":
                fail(f"kmemleak reports a leak (scan with the module {when})")
        if not self.log.complete:
            fail("the kernel log did not arrive whole")
        if self.log.lost:
            fail(f"{self.log.lost} kernel log records were overwritten before the "
                 "scan: a splat could be missed (try --append log_buf_len=64M)")

    def _check_taint(self, opts):
        try:
            taint = int(self.said["taint"]) & ~TAINT_EXPECTED
        except (KeyError, ValueError):
            self.reasons.append("the guest did not state its taint")
            return
        want = opts.expect_taint & ~TAINT_EXPECTED
        if taint != want:
            self.reasons.append(
                f"taint {taint} ({taint_letters(taint) or 'none'}), expected {want} "
                f"({taint_letters(want) or 'none'}), O, E and KUnit not counted")
