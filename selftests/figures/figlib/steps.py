# SPDX-License-Identifier: GPL-2.0
"""Where the instructions go: a profile of some calls, by function of the kernel.

A plugin of QEMU counts what the guest executes between two marks, and a library
in front of brumm bench marks the calls of interest (selftests/figures/steps/).
All instructions are counted, none is sampled. What is printed sums them up by
step: functions that do not belong to one are the rest, which is the way into the
kernel and back for a single call, and next to nothing for a large one.
"""

import bisect
import re
import subprocess
from dataclasses import dataclass

from . import REPO, Trouble, store_json
from .collect import BRUMM, STEPS, Run

HERE = REPO / "selftests/figures/steps"
UNMAP, MAP = "0xb304", "0xb303"
PAGE = 4096


@dataclass(frozen=True)
class Case:
    """Calls that are counted, and how many mappings each is about."""
    name: str
    of: str
    bench: str
    size: int
    each: int
    title: str


def cases(sizes):
    few, many = sizes.steps
    return (
        Case("contiguous", UNMAP, "many_frames", many, many, "revoke, contiguous"),
        Case("scattered", UNMAP, "scattered", many, many, "revoke, scattered"),
        Case("random", UNMAP, "random_map", many, many, "revoke, random tree"),
        Case("map", MAP, "leaf_map", few, 1, "map one page"),
        Case("unmap", UNMAP, "leaf_unmap", few, 1, "unmap one leaf"),
        Case("memfd", "munmap", "munmap_memfd", many, many, "munmap of a memfd"),
    )


# A function is of the first step whose pattern it fits.
STEPS_OF = (
    ("ledger", r"(ledger|mapdb_(charge|tally)|__srcu|group_).*"),
    ("trees", r"(mapdb_unlink|rb_erase|__rb_|rb_insert|rb_next|it_|mapdb_link$|"
     r"mapdb_space_insert|mapdb_lineage_(first|next)|path_next).*"),
    ("choose", r"(gather|mapdb_batch_(sort|state)|mapdb_lock_at|memmove).*"),
    ("page tables", r"(unmap_|zap_|vm_normal_page|pte_|__pte_|arch_check_zapped|flush_tlb|"
     r"folio_|__folio|tlb_|__tlb|native_flush|free_pgd|free_pages_and_swap|"
     r"vma_interval).*"),
    ("memory", r"(free_run|mapdb_node_(alloc|free)|store_take|kmem_cache|kfree|__kmalloc|"
     r"__slab|slab_|build_detached|__memcg|mod_objcg|mod_memcg|__mod_|refill_obj|obj_cgroup|"
     r"free_unref|__free_|allocate_slab|memset|clear_page|get_page|__alloc).*"),
    ("finish", r"finish.*"),
)


def step_of(function):
    name = function.split(" ")[0]
    for step, pattern in STEPS_OF:
        if re.fullmatch(pattern, name):
            return step
    return "rest"


def build(folder):
    """The plugin, the marks, and a QEMU that loads the plugin."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("plugin", "mark"):
        done = subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-o",
                               folder / f"{name}.so", HERE / f"{name}.c"],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, check=False)
        if done.returncode:
            raise Trouble(f"{HERE / name}.c does not build:\n{done.stdout}")
    qemu = folder / "qemu"
    qemu.write_text("#!/bin/sh\nexec qemu-system-x86_64 -plugin "
                    f'"{folder}/plugin.so,out={folder}/counts" "$@"\n')
    qemu.chmod(0o755)
    return qemu


def script(folder, some):
    """What the guest does; {out} gets its symbols."""
    preload = f"LD_PRELOAD={folder}/mark.so"
    lines = [f"STEPS_OF=check {preload} /bin/true"]
    lines += [f"STEPS_OF={c.of} STEPS_BYTES={c.size * PAGE} {preload} {BRUMM} bench "
              f"{c.bench} --size {c.size} --repeat 1 --json >/dev/null" for c in some]
    return " && ".join(lines) + " && cat /proc/kallsyms >{out}"


class Symbols:
    """Of the guest's kernel, its modules included."""

    def __init__(self, path):
        found = []
        for line in path.read_text().splitlines():
            word = line.split()
            if word[1] in "tTwW":
                found.append((int(word[0], 16), " ".join(word[2:])))
        found.sort()
        self.at = [address for address, name in found]
        self.names = [name for address, name in found]

    def name(self, address):
        """The function there; user space is one."""
        if address < 1 << 63:
            return "user"
        return self.names[bisect.bisect_right(self.at, address) - 1]


def section(text, symbols):
    """Instructions of a call, by function."""
    lines = text.splitlines()
    calls, by = int(lines[0]), {}
    for line in lines[1:]:
        address, insns, times = line.split()
        name = symbols.name(int(address, 16))
        by[name] = by.get(name, 0) + int(insns) * int(times)
    return {name: n / calls for name, n in by.items()}


def loop_length():
    """What the marks' own loop takes, from their header."""
    return int(re.search(r"STEPS_LOOP\s+(\d+)", (HERE / "mark.h").read_text())[1])


def reduce(folder, symbols, some):
    """By case: instructions of a mapping, by function. The loop whose length is known
    tells whether the plugin counts well."""
    sections = [section(text, symbols) for text in
                (folder / "counts").read_text().strip().split("\n\n")]
    if len(sections) != len(some) + 1:
        raise Trouble(f"QEMU's plugin has left {len(sections)} of "
                      f"{len(some) + 1} counts in {folder / 'counts'}")
    times = sum(sections[0].values()) / loop_length()
    if abs(times - 1) > 0.01:
        raise Trouble(f"QEMU's plugin counts {times:.3f} times what there is")
    return {c.name: {"title": c.title, "size": c.size, "functions":
                     {name: n / c.each for name, n in
                      sorted(by.items(), key=lambda item: -item[1])}}
            for c, by in zip(some, sections[1:])}


def collect(machine, sizes):
    """Measure what is missing."""
    folder = machine.out / "steps"
    for config, module in (("used", "quota"), ("disabled", "noquota")):
        target = machine.raw / f"steps-{config}.json"
        if target.exists():
            continue
        run = Run(f"symbols-{config}", STEPS, module, script(folder, cases(sizes)))
        machine.qemu = build(folder)
        try:
            machine.boot(STEPS, module, [run])
        finally:
            machine.qemu = None
        store_json(target, reduce(folder, Symbols(machine.file(run)), cases(sizes)))


def by_step(functions):
    steps = {step: 0 for step, pattern in STEPS_OF} | {"rest": 0}
    for name, n in functions.items():
        steps[step_of(name)] += n
    return steps


def profile(raw):
    """Rows: a case, a configuration, all, and by step."""
    rows = []
    for config in ("used", "disabled"):
        for case in raw.file(f"steps-{config}").values():
            if config == "disabled" and case["title"].startswith("munmap"):
                continue
            rows.append({"what": case["title"], "config": config,
                         "instructions": sum(case["functions"].values()),
                         "steps": by_step(case["functions"]),
                         "functions": dict(list(case["functions"].items())[:40])})
    return sorted(rows, key=lambda r: r["what"])


def spell(rows):
    names = [step for step, pattern in STEPS_OF] + ["rest"]
    lines = ["instructions of each, by step (steps.py says which functions):"]
    lines.append("  ".join(["  " + "".ljust(34), "all".rjust(6)] +
                           [n.rjust(max(6, len(n))) for n in names]))
    for r in rows:
        lines.append("  ".join(
            ["  " + f"{r['what']}, {r['config']}".ljust(34),
             f"{r['instructions']:6.0f}"] +
            [f"{r['steps'][n]:{max(6, len(n))}.0f}" for n in names]))
    return "\n".join(lines)
