# SPDX-License-Identifier: GPL-2.0
"""Run brumm bench in virtual machines, in all configurations.

What is measured is a list of runs; each leaves one file of brumm bench (or of
brumm profile, brumm probe) in the raw folder. Runs that need the same module
and the same clock share a boot. A file that is there is not measured again, so
that a run that was interrupted goes on where it was.
"""

import os
import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path

from . import REPO, Trouble, say

BRUMM = Path(os.environ.get("BRUMM_BIN") or REPO / "build/user/brumm")
# Modes: how the guest's time runs. See Documentation/design/measuring.md.
ICOUNT, SMP, STEPS = "icount", "smp", "steps"


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""
    sweep: tuple        # sizes of figure 3 and 8, mappings
    repeat: int         # runs of each size
    leaves: int         # map and unmap calls of figure 9
    large: int          # mappings of what is large
    rounds: int         # runs of the ratios
    parallel: int       # mappings of figure 11
    parallel_repeat: int
    profile: str        # more arguments of brumm profile
    samples: int        # mappings of a run with probes
    range: str          # what is mapped as one node
    tenants: int        # processes that are killed beside a neighbour
    steps: tuple        # single calls, and mappings, whose instructions are counted


FULL = Sizes(sweep=tuple(range(256, 4097, 384)), repeat=5, leaves=4096,
             large=8192, rounds=7, parallel=20000, parallel_repeat=5,
             profile="--state fresh", samples=2048, range="1G", tenants=500,
             steps=(512, 4096))
QUICK = Sizes(sweep=(256, 512, 1024), repeat=5, leaves=2048, large=512, rounds=7,
              parallel=1000, parallel_repeat=2, profile="--quick --state fresh --repeat 20",
              samples=128, range="64M", tenants=60,
              steps=(64, 512))


@dataclass(frozen=True)
class Run:
    """One file."""
    name: str
    mode: str
    module: str         # "quota" or "noquota"
    command: str        # {brumm}, {out} stand for the program and the file
    needed: bool = True
    always: bool = False    # with every boot: keeps its own file up to date


def bench(name, mode, config, args):
    group = " --cgroup /" if config == "available" else ""
    return Run(name, mode, "noquota" if config == "disabled" else "quota",
               f"{{brumm}} bench{group} --output {{out}} {args} >/dev/null")


def comma(sizes):
    return ",".join(str(n) for n in sizes)


def icount_runs(s):
    """What must repeat: instructions on one CPU."""
    # Sets the prices, and measures them where there are none for this module.
    yield Run("prices", ICOUNT, "quota", f"{{brumm}} profile --device --if-changed {s.profile} "
              "--output {file} >/dev/null", always=True)
    for config in ("disabled", "available", "used"):
        yield bench(f"leaves-{config}", ICOUNT, config,
                    f"leaf_map leaf_unmap --size {s.leaves} --repeat 1")
        yield bench(f"random-{config}", ICOUNT, config,
                    f"random_map --size {comma(s.sweep)} --repeat {s.repeat}")
        yield bench(f"large-{config}", ICOUNT, config,
                    f"random_map --size {s.large} --repeat {s.rounds}")
    yield bench("frames", ICOUNT, "used",
                "single_frame many_frames "
                f"--size {comma(s.sweep)} --repeat {s.repeat}")
    yield bench("linux", ICOUNT, "used", "many_frames scattered munmap_memfd "
                "free_memfd punch_hole process_mrelease range bare_zap "
                f"--size {s.large} --range {s.large * 4096} --repeat {s.rounds}")
    # Nodes are counted here, nothing is timed: no need to touch the pages.
    yield bench("node", ICOUNT, "used",
                f"range --range {s.range} --untouched --repeat 1")


def neighbour_runs(s):
    """Who is delayed by a kill, and by how much."""
    yield Run("neighbour", ICOUNT, "quota",
              f"BRUMM_OUT=$(mktemp -d) selftests/teardown/neighbour {s.tenants} 1ms {{out}} >&2")


def probe_runs(s):
    """Sub-operations: each sample, and only the sums, for which nobody has to read
    along. Who reads stands back, or he would interrupt what is measured."""
    load = f"{{brumm}} bench random_map --size {s.samples} --repeat 4 >/dev/null"
    for name, raw in (("probe", "--raw "), ("parts", "")):
        yield Run(name, ICOUNT, "quota",
                  f"nice -n 19 {{brumm}} probe {raw}--json -- "
                  f"nice -n -19 sh -c '{load}' >{{out}}", needed=False)


def smp_runs(s):
    for config in CONFIGS_SMP:
        yield bench(f"parallel-{config}", SMP, config,
                    f"independent shared --size {s.parallel} "
                    f"--repeat {s.parallel_repeat}")


CONFIGS_SMP = ("disabled", "used")


class Machine:
    """A lane, booted as often as needed."""

    def __init__(self, lane, out, raw, cpus):
        self.lane, self.out, self.raw, self.cpus = lane, out, raw, cpus
        self.qemu = None

    def file(self, run):
        return self.raw / f"{run.name}.json"

    def script(self, runs):
        lines = []
        for run in runs:
            part = self.raw / f"{run.name}.new"
            text = run.command.format(brumm=shlex.quote(str(BRUMM)),
                                      out=shlex.quote(str(part)),
                                      file=shlex.quote(str(self.file(run))))
            done = ":" if run.always else f"mv {part} {self.file(run)}"
            fail = "exit 1" if run.needed else f"mv {part} {part}.failed || :"
            lines.append(f"echo '{run.name}' >&2; rm -f {part} {part}.partial; "
                         f"if {text}; then {done}; else {fail}; fi")
        return "\n".join(lines)

    def boot(self, mode, module, runs):
        command = [str(REPO / "selftests/vm/run"), "-k", self.lane,
                   "--mem", "3G", "--timeout", "1200", "--out", str(self.out)]
        if mode in (ICOUNT, STEPS):
            command.append("--icount")
        else:
            command += ["--smp", str(self.cpus)]
        if module == "noquota":
            command.append("--no-quota")
        command += ["--", "sh", "-c", self.script(runs)]
        env = dict(os.environ, BRUMM_MODE=mode)
        if self.qemu:
            env["QEMU"] = str(self.qemu)
        say(f"{self.lane}, {mode}, {module}: " + ", ".join(r.name for r in runs))
        with subprocess.Popen(command, env=env, cwd=REPO) as proc:
            try:
                code = proc.wait()
            except BaseException:
                proc.terminate()
                proc.wait()
                raise
        if code:
            raise Trouble(f"measuring on lane {self.lane} ended with {code}; what was "
                          f"measured is kept in {self.raw}: the same command goes on")


def build(lane):
    """The modules of the lane, and user space."""
    for command in (["make", "-s", "user"],
                    ["make", "-s", "-C", "selftests/teardown"],
                    ["scripts/build-module", "-k", lane],
                    ["scripts/build-module", "-q", "-k", lane]):
        done = subprocess.run(command, cwd=REPO, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode:
            raise Trouble(f"{' '.join(command)} failed:\n{done.stdout}")


def collect(machine, runs):
    """Measure what is missing."""
    machine.raw.mkdir(parents=True, exist_ok=True)
    missing = [r for r in runs if not r.always and not machine.file(r).exists()]
    if missing:
        build(machine.lane)
    for kind in dict.fromkeys((r.mode, r.module) for r in missing):
        machine.boot(*kind, [r for r in runs if (r.mode, r.module) == kind
                             and (r.always or r in missing)])
