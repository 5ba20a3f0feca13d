"""Where a case takes place: its folders, the fake API, and a process that is run in it.

It knows nothing of agents. What it starts it ends: the fake API, and the whole process group of a run.
"""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import urllib.request
from dataclasses import dataclass

HERE = pathlib.Path(__file__).resolve().parent
OUTPUT_BYTES_MAX = 8 * 1024 * 1024


class Failed(Exception):
    """A case did not come out as it must."""


def must(holds, why):
    """An assertion that says why."""
    if not holds:
        raise Failed(why)


@dataclass
class World:
    """The folders of one case: a repository, a home, and a scratch folder outside the repository."""

    root: pathlib.Path
    port: int = 0

    def __post_init__(self):
        self.repo, self.home, self.scratch, self.tmp = (self.root / name for name in ("repo", "home", "scratch", "tmp"))
        for folder in (self.repo, self.home, self.scratch, self.tmp):
            folder.mkdir()
        git = ["git", "-c", "user.name=Peer", "-c", "user.email=peer@example.invalid"]
        subprocess.run([*git, "init", "-q", "-b", "main"], cwd=self.repo, check=True)
        subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "Begin"], cwd=self.repo, check=True)

    def url(self, path=""):
        return f"http://127.0.0.1:{self.port}{path}"

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


@dataclass
class Ran:
    """What came of a process."""

    code: int
    stdout: str
    stderr: str
    timed_out: bool
    seconds: float

    def lines(self):
        """The JSON lines of its output. A line that is none is an error; a last one cut short is not."""
        *whole, last = [line for line in self.stdout.split("\n") if line.strip()] or [""]
        lines = [json.loads(line) for line in whole]
        with contextlib.suppress(ValueError):
            lines.append(json.loads(last))
        return lines


def supervise(argv, prompt, env, world, seconds, kill_when=None):
    """Runs a command in the repository, a prompt on its standard input, until it ends, time is over or `kill_when` says so."""
    began = time.monotonic()
    with open(world.root / "stdin", "w+b") as stdin, open(world.root / "stdout", "w+b") as out, \
            open(world.root / "stderr", "w+b") as err:
        stdin.write(prompt.encode())
        stdin.seek(0)
        child = subprocess.Popen(argv, stdin=stdin, stdout=out, stderr=err, cwd=world.repo, env=env, start_new_session=True)
        timed_out = False
        try:
            # Looked at and not reaped: until the group is ended, its number belongs to nobody else.
            while not os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                timed_out = time.monotonic() - began > seconds
                if timed_out or (kill_when and kill_when()):
                    break
                time.sleep(0.05)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
        out.seek(0)
        err.seek(0)
        stdout, stderr = (file.read(OUTPUT_BYTES_MAX).decode(errors="replace") for file in (out, err))
    return Ran(child.returncode, stdout, stderr, timed_out, time.monotonic() - began)


@contextlib.contextmanager
def fake_api(world, steps):
    """The fake API with these steps, until the end of the block."""
    world.write("script.json", json.dumps(steps))
    log = world.root / "log.jsonl"
    log.touch()
    argv = [sys.executable, str(HERE / "fake_api.py"), str(world.root / "script.json"), str(log)]
    server = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    try:
        word, _, port = server.stdout.readline().strip().partition(" ")
        must(word == "PORT", "the fake API did not start")
        world.port = int(port)
        yield log
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            urllib.request.build_opener(urllib.request.ProxyHandler({})).open(world.url("/quit"), timeout=5).close()
            server.wait(timeout=10)
    finally:
        server.kill()
        server.wait()
        server.stdout.close()
