"""The tests behind `make test`, `make test-all` (--flags slow) and `make test-services` (--services).

One line a check, with its time; the output of a check only when it fails; at the end `N passed, N failed`.
Each notebook runs in its own process, because XLA's flags and JAX's settings leak from one to the next.
Names of notebooks as arguments run only those: .ci/test.py jobs.runs world.codes
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BIN = Path(sys.executable).parent
LIMIT = 30 * 60  # seconds a notebook may take


def call(*command, **env):
    "(exit code, output) of a program in the project's folder"
    env = {
        **os.environ,
        "MPLBACKEND": "Agg",
        "OMP_NUM_THREADS": "1",
        "JAX_PLATFORMS": os.environ.get("JAX_PLATFORMS", "cpu"),
        **env,
    }
    try:
        done = subprocess.run(
            [str(c) for c in command],
            cwd=ROOT,
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=LIMIT,
        )
        return done.returncode, done.stdout
    except subprocess.TimeoutExpired as e:
        return 124, f"{(e.stdout or b'').decode(errors='replace')}\ntook longer than {LIMIT} s"


def files():
    "Path -> hash of every file that git tracks or would add"
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT, capture_output=True, check=True
    ).stdout
    paths = [ROOT / p for p in listed.decode().split("\0") if p]
    return {str(p.relative_to(ROOT)): hashlib.sha256(p.read_bytes()).hexdigest() for p in paths if p.is_file()}


def unchanged_by(tool):
    "The tool changes no file and makes none"
    before = files()
    code, output = call(BIN / tool)
    after = files()
    changed = sorted(k for k in {*before, *after} if before.get(k) != after.get(k))
    return code or bool(changed), output + "".join(f"{tool} changed {k}; run it and add the file\n" for k in changed)


def nothing_left():
    "In CI's fresh clone nothing is changed or untracked after clean and export"
    if not os.environ.get("CI"):
        return 0, ""
    code, output = call("git", "status", "--porcelain")
    return code or bool(output.strip()), output


def notebooks(flag=None):
    "The notebooks that nbdev_test runs, tests first (they are the longest); with a flag, those that have a cell with it"
    found = []
    for path in sorted((ROOT / "nbs").rglob("*.ipynb"), key=lambda p: (not p.name.startswith("test_"), p.name)):
        if any(part.startswith(("_", ".")) for part in path.relative_to(ROOT).parts):
            continue
        sources = ["".join(c["source"]) for c in json.loads(path.read_text())["cells"]]
        if not any("skip_exec: true" in s for s in sources[:1]) and (
            not flag or any(s.startswith(f"#| {flag}") for s in sources)
        ):
            found.append(path)
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--flags", default="", help="also run the cells with these flags")
    parser.add_argument(
        "--services", action="store_true", help="only the notebooks with `service` cells, and these cells"
    )
    parser.add_argument("only", nargs="*", help="names of notebooks")
    args = parser.parse_args()
    flags = "service" if args.services else args.flags
    checks, serial = [], []
    if not args.services and not args.only:
        serial = [
            ("nbdev_clean changes nothing", lambda: unchanged_by("nbdev_clean")),
            ("nbdev_export changes nothing", lambda: unchanged_by("nbdev_export")),
            ("nothing changed or untracked", nothing_left),
            ("README is what index says", lambda: call(sys.executable, ".ci/readme.py", "--check")),
            ("ruff", lambda: call(BIN / "ruff", "check", "--force-exclude", ".")),
        ]
    for path in notebooks("service" if args.services else None):
        if not args.only or path.stem in args.only:
            checks.append(
                (
                    path.name,
                    lambda path=path: call(BIN / "nbdev_test", "--path", path, "--flags", flags, "--n_workers", "0"),
                )
            )
    results = [report(name, *timed(check)) for name, check in serial]
    with concurrent.futures.ThreadPoolExecutor(1 if args.services else 2) as pool:
        futures = {pool.submit(timed, check): name for name, check in checks}
        for future in concurrent.futures.as_completed(futures):
            results.append(report(futures[future], *future.result()))
    print(f"{sum(results)} passed, {len(results) - sum(results)} failed", flush=True)
    return 0 if results and all(results) else 1


def timed(check):
    "(exit code, output, seconds) of a check"
    begun = time.time()
    code, output = check()
    return code, output, time.time() - begun


def report(name, code, output, seconds):
    "Prints a check's line; True if it passed"
    print(f"{'FAILED' if code else 'passed'} {seconds:7.1f} s  {name}", flush=True)
    lines = output.splitlines()
    print(
        "".join(f"    {line}\n" for line in (lines[-80:] if code else lines) if code or line.startswith("SKIPPED")),
        end="",
        flush=True,
    )
    return not code


if __name__ == "__main__":
    sys.exit(main())
