"""The Redis of slurm/label.sbatch.

`queue_server.py FOLDER` serves on every address of this node, with TLS and the password in FOLDER/password, until it is
told to stop. FOLDER/address says where.
"""

import os
import signal
import socket
import sys
from pathlib import Path

from craftax_nb.runs.processes import end_process, start_process
from craftax_nb.workers.connection import QueueError, connect, server_binary, server_config


def free_port() -> int:
    with socket.create_server(("", 0)) as probe:
        return probe.getsockname()[1]


def serve(folder: Path) -> int:
    "Runs the server; its exit code"
    host, port, password = socket.gethostname(), free_port(), (folder / "password").read_text().strip()
    hosts = [host, socket.getfqdn(), "localhost"]
    server = start_process([server_binary(), server_config(folder, port, password, hosts, bind="* -::*")])
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)  # it is meant for the notebook
    try:
        os.environ |= {"REDIS_PASSWORD_FILE": str(folder / "password"), "REDIS_CA_FILE": str(folder / "redis.crt")}
        url = f"rediss://labeller@{host}:{port}/0"
        connect(url, wait=20).close()
        new_file = folder / ".address"
        new_file.write_text(url + "\n")
        os.replace(new_file, folder / "address")
        return server.wait()
    finally:
        end_process(server)


if __name__ == "__main__":
    try:
        sys.exit(serve(Path(sys.argv[1]).absolute()))
    except QueueError as e:
        sys.exit(f"error: {e}")
