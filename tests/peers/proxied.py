#!/usr/bin/env python3
"""Real agents through the proxy, against a scripted provider on this machine: what can be cured they do not notice.

    proxied.py --bin FOLDER --backstop PATH [--agent NAME]... [--row TEXT]...

FOLDER holds `claude`, `codex` and `opencode` (`.ci/peers` installs them). One that is not there is skipped, and that is said;
it fails if there is none. What agents need, and why, stands in `run.py`. A row is what the provider does and whether the agent
has to succeed; none: it may, because it tries again by itself, but never with half an answer.
"""

import argparse
import os
import pathlib
import sys
import tempfile

sys.dont_write_bytecode = True
from agents import AGENTS  # noqa: E402
from scripted_provider import TEXT, Provider, proxied, serve  # noqa: E402
from world import World, supervise  # noqa: E402

SECONDS_MAX = 150
PROMPT = "Say hello."
# Those whose API the scripted provider speaks.
NAMES = ["claude", "codex", "opencode"]
OK = ("ok",)
ROWS = [
    ("nothing wrong", [OK], True),
    ("529 twice, then well", [("status", 529, {})] * 2 + [OK], True),
    ("500, then well", [("status", 500, {}), OK], True),
    ("429 with retry-after", [("status", 429, {"retry-after": "1"}), OK], True),
    ("429 with retry-after-ms", [("status", 429, {"retry-after-ms": "200"}), OK], True),
    ("429 beyond the deadline", [("status", 429, {"retry-after": "7999"})], False),
    ("reset before the first byte", [("reset",), OK], True),
    ("cut before the first content", [("cut before content",), OK], True),
    ("cut after the first content", [("cut after content",), OK], None),
    ("reset after the first content", [("reset after content",), OK], None),
    ("overflow twice", [("overflow",)], False),
    ("slow drip", [("drip",)], True),
    ("garbage", [("garbage",)], False),
    ("401", [("status", 401, {})], False),
]

words = argparse.ArgumentParser()
words.add_argument("--bin", required=True, type=pathlib.Path)
words.add_argument("--backstop", required=True)
words.add_argument("--agent", action="append", default=[])
words.add_argument("--row", action="append", default=[])
args = words.parse_args()

origin = serve()
wanted = [agent for agent in AGENTS if agent.name in (args.agent or NAMES)]
there = [agent for agent in wanted if (args.bin / agent.name).exists()]
for agent in wanted:
    if agent not in there:
        print(f"skipped: {agent.name} is not in {args.bin}")
wrong = 0
for agent in there:
    for what, script, succeeds in ROWS:
        if args.row and not any(part in what for part in args.row):
            continue
        with tempfile.TemporaryDirectory(prefix="backstop-proxied-", ignore_cleanup_errors=True) as folder:
            # A state folder for each row, so that one row's limit or breaker does not hold for the next.
            world = World(pathlib.Path(folder))
            beside = world.root / "proxy"
            beside.mkdir()
            proxy, base = proxied(args.backstop, beside, origin)
            world.port = int(base.rsplit(":", 1)[1])
            Provider.script, Provider.seen = script, []
            nowhere = "http://127.0.0.1:9"
            env = {
                "PATH": f"{args.bin.resolve()}:{os.environ['PATH']}", "HOME": str(world.home), "TMPDIR": str(world.tmp),
                "LANG": "C.UTF-8", "GIT_CONFIG_NOSYSTEM": "1", "HTTPS_PROXY": nowhere, "HTTP_PROXY": nowhere,
                "NO_PROXY": "127.0.0.1,localhost", "BACKSTOP_RESULT": str(world.scratch / "result.json"),
                # By itself it tries again ten times, over minutes, where it is meant to fail.
                "CLAUDE_CODE_MAX_RETRIES": "2",
                **agent.prepare(world),
            }
            try:
                ran = supervise(agent.argv(world), PROMPT, env, world, SECONDS_MAX)
                said = agent.said(ran.lines())
            finally:
                proxy.terminate()
                proxy.wait(40)
            got = bool(said.ok) and ran.code == 0 and TEXT in said.text
            # Half an answer that looks like a whole one is the one thing that must never be.
            is_half = bool(said.ok) and ran.code == 0 and TEXT not in said.text
            fine = not is_half and (succeeds is None or got == succeeds) and not (ran.timed_out and succeeds)
            wrong += not fine
            ending = "no end in time" if ran.timed_out else f"exit {ran.code}"
            words_ = " ".join((said.text or ran.stderr[-200:]).split())[:80]
            print(f"{'ok ' if fine else 'WRONG'} {agent.name:9} {what}: {len(Provider.seen)} requests, {ending}, {ran.seconds:.0f} s, {words_!r}", flush=True)
if not there:
    sys.exit("no agent is there: .ci/peers installs them")
sys.exit(f"{wrong} rows are wrong" if wrong else 0)
