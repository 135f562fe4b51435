"""Python programs that tests start, as copies of a process that has imported everything.

A test that starts a job starts papermill, papermill a kernel, and each of them would spend most of its seconds on
importing PyTorch, JAX and their like. After `fork_programs()` a command such as `python -m papermill ...` or
`python -c "..."` that is given to subprocess.Popen is not started anew. Instead a helper process, which was forked
before anything was computed and since then only waits, forks a copy of itself, and the copy runs the program.

To the caller it is a process as any other: its own child, with a pid, an exit code, the files, the folder and the
environment that Popen was told. Its memory differs: all modules in HEAVY are imported, and its hashes of strings are
its parent's. A test for which that matters puts FRESH_PYTHON=1 into the environment, and gets a new interpreter.
"""

import atexit
import ctypes
import functools
import inspect
import os
import pickle
import runpy
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
from dataclasses import dataclass
from types import ModuleType, SimpleNamespace

# What these variables say is read while Python starts or while libraries are imported, so it can't differ in a copy.
READ_EARLY = ("FRESH_PYTHON", "PYTHON", "LD_", "JAX_", "OMP_", "MKL_", "HF_", "TORCH_", "TRANSFORMERS_", "MPL")
PR_SET_CHILD_SUBREAPER = 36
POPEN_START = subprocess.Popen._execute_child  # what Popen calls once it has made the pipes; the same in Python 3.11.x


@dataclass
class Program:
    "What a copy does: the words after `python`, and where it runs"

    words: list[str]
    folder: str
    environment: dict[str, str]
    new_session: bool
    first: object  # preexec_fn, a function of a module, or None


class Helper:
    "A process that was forked from this one and forks copies of itself on request"

    def __init__(self, unneeded=()):
        self.lock, self.environment = threading.Lock(), dict(os.environ)
        self.socket, requests = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        if os.fork() == 0:
            for file in (self.socket.detach(), *unneeded):
                os.close(file)
            serve(requests)
        requests.close()

    def start(self, request: bytes, files: list[int]) -> int:
        "Has a copy do what is requested; its pid. The copy becomes a child of this process"
        with self.lock:
            adopt_orphans(True)
            socket.send_fds(self.socket, [request], files)
            pid = int(self.socket.recv(100))
            adopt_orphans(False)
        return pid


def adopt_orphans(yes: bool):
    "Whether a descendant whose parent ends becomes this process's child, rather than that of process 1"
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, int(yes), 0, 0, 0)


def serve(requests: socket.socket):
    "The helper's work: a copy for each request, until the process that it was forked from has ended"
    try:
        answer(requests)
    finally:
        os._exit(0)


def answer(requests: socket.socket):
    "Forks a copy for each request"
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nothing, number)
    while True:
        request, files, _, _ = socket.recv_fds(requests, 1 << 20, 3)
        if not request:
            return
        fork_orphan(functools.partial(run_copy, requests, request, files))
        for file in files:
            os.close(file)


def fork_orphan(work):
    "Forks a process that does the work, and one in between, which ends at once, so that an ancestor adopts the first"
    between = os.fork()
    if between == 0:
        between = os.getpid()
        if os.fork():
            os._exit(0)
        while os.getppid() == between:
            time.sleep(0.001)
        end_with(work)
    os.waitpid(between, 0)


def run_copy(requests: socket.socket, request: bytes, files: list[int]):
    "A copy's work: it says its pid when it is what Popen expects, and runs the program"
    try:
        program = pickle.loads(request)
        become(program, files, requests.fileno())
    finally:
        requests.send(str(os.getpid()).encode())
        requests.close()
    run_words(*program.words)


def become(program: Program, files: list[int], requests: int):
    "Gives a copy the files, the environment, the folder, the session and the helper of a program"
    for number, file in enumerate(files):
        os.dup2(file, number)
    os.environ.clear()
    os.environ.update(program.environment)
    fork_programs([*files, requests])  # the programs that this one starts are copies too
    for file in files:
        os.close(file)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(program.folder)
    if program.new_session:
        os.setsid()
    if program.first:
        program.first()


def run_words(kind: str, name: str, *arguments: str):
    "What the command `python -m name ...` or `python -c name ...` does"
    if kind == "-m":
        sys.argv, sys.path[0] = [name, *arguments], os.getcwd()
        runpy.run_module(name, run_name="__main__", alter_sys=True)
    else:
        sys.argv, sys.path[0] = ["-c", *arguments], ""
        sys.modules["__main__"] = ModuleType("__main__")
        exec(compile(name, "<string>", "exec"), vars(sys.modules["__main__"]))


def as_request(call, environment: dict[str, str]) -> bytes:
    "What Popen was told to start, as a pickled Program; empty if a copy can't do it"
    usual = (call.executable, call.shell, call.close_fds, call.pass_fds, call.umask, call.process_group, call.uid)
    if usual != (None, False, True, (), -1, -1, None) or not isinstance(call.args, list | tuple):
        return b""
    python, *words = [os.fspath(word) for word in call.args]
    if python != sys.executable or len(words) < 2 or words[0] not in ("-m", "-c"):
        return b""
    own, folder = dict(os.environ if call.env is None else call.env), os.fspath(call.cwd or os.getcwd())
    differing = {name for name, _ in own.items() ^ environment.items()}
    if any(name.startswith(READ_EARLY) for name in differing) or not os.path.isdir(folder):
        return b""
    if getattr(call.preexec_fn, "__module__", "") == "__main__":  # of a notebook, which the copy doesn't have
        return b""
    return pickle.dumps(Program(words, folder, own, call.start_new_session, call.preexec_fn))


def fork_programs(unneeded=()):
    """Has subprocess.Popen make a copy of this process, as it is now, where it is to start a program in Python.

    No thread may run yet. The helper closes the files `unneeded`.
    """
    helper, signature = Helper(unneeded), inspect.signature(POPEN_START)

    def start(self, *values):
        call = SimpleNamespace(**signature.bind(self, *values).arguments)
        request = as_request(call, helper.environment)
        if not request:
            return POPEN_START(self, *values)
        wanted = (call.p2cread, call.c2pwrite, call.errwrite)  # -1 is this process's own
        self.pid = helper.start(request, [number if file == -1 else file for number, file in enumerate(wanted)])
        self._child_created = True
        self._close_pipe_fds(call.p2cread, call.p2cwrite, call.c2pread, call.c2pwrite, call.errread, call.errwrite)

    subprocess.Popen._execute_child = start


def end_with(work):
    "Does a child's work and ends it as Python ends a program, but for taking all modules apart, which costs 0.5 s each"
    code = 1
    try:
        code = work()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int | None) else print(end.code, file=sys.stderr) or 1
    except BaseException:
        traceback.print_exc()
    try:
        threading._shutdown()  # waits for its threads
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code or 0)
