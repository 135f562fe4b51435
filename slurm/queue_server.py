"""The Redis of slurm/label.sbatch: `queue_server.py FOLDER` serves on every address of this node with TLS and the password in FOLDER/password until it is
told to stop; FOLDER/address says where."""
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

from craftax_nb.jobs.processes import end_process, start_process
from craftax_nb.workers.connection import QueueError, connect, server_binary, server_config


def serve(folder: Path) -> int:
    "Runs the server; its exit code"
    host = socket.gethostname()
    with socket.create_server(("", 0)) as probe:
        port = probe.getsockname()[1]
    config = server_config(folder, port, (folder / "password").read_text().strip(), tls=True)
    config.write_text(config.read_text().replace("bind 127.0.0.1", "bind * -::*"))
    names = ",".join(f"DNS:{name}" for name in dict.fromkeys([host, socket.getfqdn(), "localhost"]))
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", folder / "redis.key", "-out", folder / "redis.crt", "-days", "30",
                    "-subj", f"/CN={host[:60]}", "-addext", f"subjectAltName={names}"], check=True, capture_output=True)
    (folder / "redis.key").chmod(0o600)
    server = start_process([server_binary(), config])
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)  # the notebook's affair
    try:
        os.environ |= {"REDIS_PASSWORD_FILE": str(folder / "password"), "REDIS_CA_FILE": str(folder / "redis.crt")}
        url = f"rediss://labeller@{host}:{port}/0"
        connect(url, wait=20).close()
        new = folder / ".address"
        new.write_text(url + "\n")
        os.replace(new, folder / "address")
        return server.wait()
    finally:
        end_process(server)


if __name__ == "__main__":
    try:
        sys.exit(serve(Path(sys.argv[1]).absolute()))
    except QueueError as e:
        sys.exit(f"error: {e}")
