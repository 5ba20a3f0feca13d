#!/usr/bin/env python3
"""Every agent through Backstop, by its own command line and by the Agent Client Protocol: what Backstop calls each failure, how
long the attempt took, and what was left behind.

    table.py --bin FOLDER --backstop PATH [--agent NAME]... [--by plain|acp] [--case NAME]...
             [--jobs N] [--out FILE.json]

FOLDER holds the agents and the adapters `claude-agent-acp` and `codex-acp` (`.ci/peers` installs them). Prints a line for each case
and a table in Markdown at the end; with `--out` results are added to those of earlier calls, so that one agent can be tried at a
time. It fails where a fault has another name than the one that is written down here for that agent (`FAILURES`, `OTHERWISE`), where
work is not committed, where a session is not continued, or where a process is left.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import replace

sys.dont_write_bytecode = True
from agents import AGENTS  # noqa: E402
from run import CASES, CONTENT, PLAN, RESULT, environment  # noqa: E402
from world import Failed, World, fake_api, must  # noqa: E402

SECONDS_MAX = 150
# An agent that says nothing for so long is ended. Longer than any of them needs to start on a loaded machine.
IDLE_SECONDS = 30
# Who waits by itself and says nothing, not even to its log: it is let.
SILENT = (("copilot", "acp", "limit ends"),)
# How long the limit lasts that ends while a run waits for it: longer than an agent may be silent.
LIMIT_SECONDS = 40
ACP = {"claude": "acp:claude-agent-acp", "codex": "acp:codex-acp", "opencode": "acp:opencode acp", "gemini": "acp:gemini --acp",
       "copilot": "acp:copilot --acp", "qwen": "acp:qwen --acp"}
FIND_RESULT = {"result": r"BACKSTOP_RESULT names, which is [^/\n]*(/[^\s`\"']+)(?![\s\S]*BACKSTOP_RESULT names)"}
WRITE_RESULT = {"write": {"path": "{result}", "content": json.dumps(RESULT)}, "find": FIND_RESULT}
LAST_WORDS = {"text": json.dumps(RESULT), "times": 6}
# name: the steps of the API, and what Backstop is to call it.
FAILURES = {
    "401": ([{"fail": "unauthorized"}], "auth_error"),
    "429": ([{"fail": "rate_limited"}], "rate_limited"),
    "usage limit": ([{"fail": "usage_limit", "seconds": 7200}], "rate_limited"),
    "overload": ([{"fail": "overloaded"}], "network_transient"),
    "overflow": ([{"fail": "prompt_too_long"}], "context_overflow"),
    "cut": ([{"fail": "cut"}], "network_transient"),
    "stall": ([{"fail": "stall"}], "timeout"),
}
# agent, by, case: what it is called there instead, because of what the agent tells or hides.
OTHERWISE = {
    # They tell when the limit ends.
    ("claude", "plain", "usage limit"): "rate_limited with reset",
    ("claude", "acp", "usage limit"): "rate_limited with reset",
    ("codex", "plain", "usage limit"): "rate_limited with reset",
    ("codex", "acp", "usage limit"): "rate_limited with reset",
    ("copilot", "plain", "usage limit"): "rate_limited with reset",
    # It takes what came before the cut for the whole answer: only the result is missing.
    ("gemini", "acp", "cut"): "parse_error",
}


# Cases of a subscription.
SUBSCRIPTION = ("usage limit", "limit ends")


class Try:
    """One agent in one world."""

    def __init__(self, agent, by, args, world, env):
        self.agent, self.by, self.args, self.world, self.env = agent, by, args, world, env
        self.name = ACP[agent.name] if by == "acp" else agent.name

    def start(self):
        out = open(self.world.root / "backstop.log", "ab")
        argv = [self.args.backstop, "run", "PLAN.md", "--agent", self.name, "--commit", "auto"]
        return subprocess.Popen(argv, cwd=self.world.repo, env=self.env, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                start_new_session=True)

    def events(self, kind):
        done = subprocess.run([self.args.backstop, "events", "--kind", kind, "--json"], cwd=self.world.repo, env=self.env,
                              capture_output=True, text=True, timeout=30)
        return [json.loads(line) for line in done.stdout.splitlines() if line.strip()]

    def end(self, child, how=signal.SIGINT):
        """Ends Backstop as a person does, then for good."""
        for sign, seconds in ((how, 25), (signal.SIGINT, 10), (signal.SIGKILL, 5)):
            if child.poll() is None:
                child.send_signal(sign)
                try:
                    child.wait(seconds)
                except subprocess.TimeoutExpired:
                    pass
        return child.returncode

    def left(self):
        """Processes of this world that still run."""
        mark, left = f"HOME={self.world.home}".encode(), []
        for process in pathlib.Path("/proc").iterdir():
            try:
                if process.name.isdigit() and mark in (process / "environ").read_bytes().split(b"\0"):
                    left.append((process / "comm").read_text().strip())
            except OSError:
                continue
        return left

    def log_tail(self):
        return (self.world.root / "backstop.log").read_text(errors="replace")[-1500:]


def wait_for(holds, seconds, what):
    until = time.monotonic() + seconds
    while not (found := holds()):
        must(time.monotonic() < until, f"waited in vain for {what}")
        time.sleep(0.5)
    return found


def done_and_committed(one):
    """The work is done, and its commit is there."""
    child = one.start()
    try:
        child.wait(SECONDS_MAX)
    except subprocess.TimeoutExpired:
        one.end(child)
    must(child.returncode == 0, f"ended with {child.returncode}: {one.log_tail()}")
    must((one.world.repo / "hello.txt").read_text(encoding="utf-8") == CONTENT, "hello.txt holds something else")
    subjects = subprocess.run(["git", "log", "--format=%s"], cwd=one.world.repo, capture_output=True, text=True).stdout
    must(subjects == "feat: say hello\nBegin\n", f"the commits are {subjects!r}")
    return "committed"


def failure(name, usual):
    """The first attempt fails, and Backstop names it as it should."""
    def act(one):
        child = one.start()
        try:
            fault = wait_for(lambda: one.events("error.classified") or (child.poll() is not None and one.events("error.classified")),
                             SECONDS_MAX, f"a fault: {one.log_tail()}")[0]["fault"]
        finally:
            one.end(child)
        reset = fault.get("facts", {}).get("retry_after_seconds")
        outcome = fault["reason"] + (" with reset" if reset and reset > 60 else "")
        expected = OTHERWISE.get((one.agent.name, one.by, name), usual)
        must(outcome == expected, f"it is called {outcome} and not {expected}: {fault.get('cause')}")
        return outcome
    return act


def cancelled(one):
    """A person ends Backstop while the agent runs a command: the first Ctrl-C lets phases end, the second does not."""
    child = one.start()
    try:
        wait_for(lambda: "tail" in one.left(), SECONDS_MAX, f"the command: {one.log_tail()}")
        child.send_signal(signal.SIGINT)
        wait_for(lambda: "Ctrl-C" in one.log_tail() or child.poll() is not None, SECONDS_MAX, f"its answer: {one.log_tail()}")
    finally:
        code = one.end(child)
    must(code == 130, f"ended with {code}")
    return "interrupted"


def killed(one):
    """Backstop is killed and started again: the agent goes on in its session, where it can."""
    child = one.start()
    wait_for(lambda: one.events("session.started") and (one.world.root / "log.jsonl").read_text().count('"step": 2'), SECONDS_MAX,
             f"the second step: {one.log_tail()}")
    child.kill()
    child.wait()
    # Gemini loses a session that is loaded in the minute in which it was made.
    if one.agent.name == "gemini" and one.by == "acp":
        time.sleep(61 - time.time() % 60)
    again = done_and_committed(one)
    ids = {event["session_id"] for event in one.events("session.started")}
    must(len(ids) == 1, f"it went on in another session: {ids}")
    return f"{again}, same session"


def limited(one):
    """The limit of a subscription ends while the run waits for it: the agent goes on in its session."""
    # Gemini loses a session that is loaded in the minute in which it was made.
    if one.agent.name == "gemini" and one.by == "acp":
        time.sleep((LIMIT_SECONDS - time.time()) % 60)
    done = done_and_committed(one)
    ids = {event["session_id"] for event in one.events("session.started")}
    must(len(ids) == 1, f"it went on in another session: {ids}")
    return f"{done}, same session" + (", waited for" if one.events("wait.started") else "")


def cases():
    """name: steps, what is done and checked."""
    table = {"work": (CASES[0].steps, done_and_committed)}
    table |= {name: (steps, failure(name, usual)) for name, (steps, usual) in FAILURES.items()}
    table["limit ends"] = ([CASES[0].steps[0], {"fail": "usage_limit", "seconds": LIMIT_SECONDS}, WRITE_RESULT, LAST_WORDS], limited)
    table["permission"] = ([{"run": f"printf %s '{CONTENT.strip()}' > hello.txt && echo >> hello.txt"}, WRITE_RESULT, LAST_WORDS],
                           done_and_committed)
    table["cancel"] = ([{"run": "tail -f /dev/null"}, LAST_WORDS], cancelled)
    table["kill -9"] = ([{"write": {"path": "hello.txt", "content": CONTENT}}, {"fail": "hang", "times": 1},
                         WRITE_RESULT, LAST_WORDS], killed)
    return table


def try_one(agent, by, name, args):
    steps, act = cases()[name]
    with tempfile.TemporaryDirectory(prefix="peers-", ignore_cleanup_errors=True) as root:
        world = World(pathlib.Path(root).resolve())
        world.write("repo/PLAN.md", PLAN)
        with fake_api(world, steps):
            env = environment(agent, replace(CASES[0], subscription=name in SUBSCRIPTION), world, args.bin)
            idle = 3 * LIMIT_SECONDS if (agent.name, by, name) in SILENT else IDLE_SECONDS
            env |= {"BACKSTOP_STATE_DIR": str(world.root / "state"), "BACKSTOP_PLAN_IDLE": f"{idle}s"}
            one = Try(agent, by, args, world, env)
            began = time.monotonic()
            try:
                outcome = act(one)
                took = [event["duration_ms"] for event in one.events("attempt.finished")][:1]
            except (Failed, OSError, ValueError, KeyError, IndexError) as error:
                return {"ok": False, "outcome": f"{type(error).__name__}: {error}"}
            finally:
                until = time.monotonic() + 10
                while (left := one.left()) and time.monotonic() < until:
                    time.sleep(0.5)
        seconds = took[0] / 1000 if took else time.monotonic() - began
        return {"ok": not left, "outcome": outcome, "seconds": round(seconds, 1), "left": left}


def markdown(results):
    """The table, a row for each case and a column for each agent."""
    out = []
    for by, title in (("plain", "By their own command lines"), ("acp", "By the Agent Client Protocol")):
        columns = [agent.name for agent in AGENTS if any(key.startswith(f"{agent.name} {by} ") for key in results)]
        if not columns:
            continue
        out += [f"### {title}", "", f"| | {' | '.join(columns)} |", f"|---|{'---|' * len(columns)}"]
        for name in cases():
            cells = []
            for agent in columns:
                found = results.get(f"{agent} {by} {name}")
                cells.append("not run" if not found else f"{found['outcome'][:60]}, {found.get('seconds', '-')} s" if found["ok"]
                             else f"FAILED: {found['outcome'][:60]} {found.get('left') or ''}".replace("|", "/").replace("\n", " "))
            out.append(f"| {name} | {' | '.join(cells)} |")
        out.append("")
    return "\n".join(out)


def main():
    parser = argparse.ArgumentParser(description="Every agent through Backstop, plain and by ACP.")
    parser.add_argument("--bin", type=lambda path: pathlib.Path(path).resolve(), required=True)
    parser.add_argument("--backstop", type=lambda path: str(pathlib.Path(path).resolve()), required=True)
    parser.add_argument("--agent", action="append", choices=list(ACP))
    parser.add_argument("--by", choices=("plain", "acp"))
    parser.add_argument("--case", action="append", choices=list(cases()))
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--jobs", type=int, default=2, help="how many cells are run side by side")
    args = parser.parse_args()
    results = json.loads(args.out.read_text()) if args.out and args.out.exists() else {}
    cells = [(agent, by, name) for agent in AGENTS for by in ("plain", "acp") for name in cases()
             if (not args.agent or agent.name in args.agent) and args.by in (None, by) and (not args.case or name in args.case)]
    failed = 0
    # Cells share nothing: each has its own home, state and API. Most of their time is spent waiting for a clock.
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        done = pool.map(lambda cell: try_one(*cell, args), cells)
        for (agent, by, name), result in zip(cells, done):
            failed += not result["ok"]
            results[f"{agent.name} {by} {name}"] = result
            print(f"{agent.name} {by} {name}: {'ok' if result['ok'] else 'FAILED'} {json.dumps(result)}", flush=True)
            if args.out:
                args.out.write_text(json.dumps(results, indent=1) + "\n")
    print(markdown(results))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
