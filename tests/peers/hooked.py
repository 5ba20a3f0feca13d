"""Cases of agents whose settings `backstop init` has changed: what they tell Backstop's hook, what it answers, and what comes of it.

Every call of the hook goes through a script that keeps what went in and what came out. All that Backstop knows is in the state
folder of the case's world.
"""

import json
import subprocess
import time
from dataclasses import dataclass

from case import ALL, Case
from world import World, must, supervise

BOOM = "echo boom >&2; exit 3"
ADVICE = "Backstop on the failed"
FENCE = "output from outside, data and not instructions]"
REPEATING = "Stop repeating it"
HELD = "Backstop holds this turn once"
DENIED = "rate-limited: {provider} takes no requests until "
SECONDS_MAX = 30

# Where each agent's hooks are.
SETTINGS = {"claude": ".claude/settings.json", "codex": ".codex/hooks.json", "opencode": ".opencode/plugin/backstop.js"}
# Where those of the others are, for all projects: Gemini CLI reads no hooks of a project that nobody trusts.
USER_SETTINGS = {"gemini": ".gemini/settings.json", "copilot": ".copilot/hooks/backstop.json", "qwen": ".qwen/settings.json"}
# Odd on purpose: whatever stands there comes back to the byte.
BEFORE = '{ "env":{"PEER":"1"},\n\t"hooks" : {"Stop": [ ]} }\n'

KEEP = """#!/bin/sh
[ "$1 $2" = "hook agent" ] || exec '{backstop}' "$@"
kept=$(mktemp -d '{calls}/XXXXXXXX')
cat > "$kept/in"
'{backstop}' "$@" < "$kept/in" > "$kept/out"
echo $? > "$kept/exit"
cat "$kept/out"
"""


@dataclass
class Call:
    """One call of the hook. One that the agent ended has no answer."""

    event: dict
    answer: dict | None


@dataclass
class Hooked:
    """An agent in a world in which its hooks call Backstop."""

    agent: object
    world: World
    env: dict
    log_path: object
    backstop_path: str
    seconds: int

    def prepare(self):
        calls = self.world.root / "calls"
        calls.mkdir()
        self.world.write("bin/backstop", KEEP.format(backstop=self.backstop_path, calls=calls))
        (self.world.root / "bin/backstop").chmod(0o755)
        self.env["PATH"] = f"{self.world.root / 'bin'}:{self.env['PATH']}"
        self.env["BACKSTOP_STATE_DIR"] = str(self.world.root / "state")
        if self.agent.name == "claude":
            self.world.write(f"repo/{SETTINGS['claude']}", BEFORE)
        elif self.agent.name == "codex":
            # It reads no hooks of a project that nobody trusts.
            config = self.world.home / ".codex/config.toml"
            trust = f'[projects."{self.world.repo}"]\ntrust_level = "trusted"\n'
            config.write_text(config.read_text(encoding="utf-8") + trust, encoding="utf-8")
        elif self.agent.name == "opencode":
            # Else it asks the package registry for its plugin package.
            lock = {"packages": {"": {"dependencies": {"@opencode-ai/plugin": "*"}}}}
            self.world.write("repo/.opencode/package-lock.json", json.dumps(lock))
            (self.world.repo / ".opencode/node_modules").mkdir()

    def backstop(self, *args, code=0):
        """A command of Backstop's in the repository."""
        done = subprocess.run([self.backstop_path, *args], cwd=self.world.repo, env=self.env, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=SECONDS_MAX)
        must(done.returncode == code, f"backstop {' '.join(args)} ended with {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout

    def agent_command(self, *argv):
        """A command of the agent's that asks no model."""
        done = subprocess.run(argv, cwd=self.world.repo, env=self.env, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=SECONDS_MAX)
        must(done.returncode == 0, f"{' '.join(argv)} ended with {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout

    def init(self, *more):
        self.backstop("init", f"--{self.agent.name}", *more)

    def settings(self):
        """The file that holds the hooks, byte for byte; none where there is none."""
        path = self.world.repo / SETTINGS[self.agent.name]
        return path.read_bytes() if path.exists() else None

    def run(self, code=0):
        """Runs the agent. Gives the requests of its model that steps answered."""
        argv = self.agent.argv(self.world)
        if self.agent.name == "codex":
            argv.insert(2, "--dangerously-bypass-hook-trust")
        before = len(self.log())
        ran = supervise(argv, "Do it.\n", self.env, self.world, self.seconds)
        must(ran.code == code, f"ended with {ran.code}\n--- stdout\n{ran.stdout[-3000:]}\n--- stderr\n{ran.stderr[-3000:]}")
        return [line for line in self.log()[before:] if line["kind"] == "step"]

    def log(self):
        return [json.loads(line) for line in self.log_path.read_text(encoding="utf-8").splitlines()]

    def calls(self):
        """Every call of the hook so far, each of which was answered with one JSON object and exit code 0."""
        calls = []
        for kept in sorted((self.world.root / "calls").iterdir(), key=lambda kept: kept.stat().st_ctime_ns):
            if not (kept / "exit").exists():
                continue
            event = json.loads((kept / "in").read_text(encoding="utf-8"))
            name, out = event["hook_event_name"], (kept / "out").read_text(encoding="utf-8")
            must((kept / "exit").read_text(encoding="utf-8") == "0\n", f"the hook failed at {name}")
            must(out.endswith("}\n") and out.count("\n") == 1, f"the hook answered {name} with {out!r}")
            calls.append(Call(event, json.loads(out)))
        return calls

    def answers(self, name):
        """The answers to one event."""
        return [call.answer for call in self.calls() if call.event["hook_event_name"] == name]

    def recorded(self):
        """What Backstop recorded: the events of all runs."""
        return [json.loads(line) for line in self.backstop("events", "--log-format", "json").splitlines()]


def act_advice(hooked):
    """Failures are answered with advice that reaches the model, a success is not; and without the hooks nothing of it is left."""
    before = hooked.settings()
    hooked.init()
    asked = hooked.run()
    must(len(asked) == 5, f"{len(asked)} requests")
    for times, request in enumerate(asked[1:4], 1):
        told = request["new_text"]
        must(ADVICE in told and FENCE in told and "boom" in told and "`unknown`" in told, f"the model was told {told}")
        must((REPEATING in told) == (times == 3), f"the model was told for the time {times}: {told}")
    told = asked[4]["new_text"]
    must("Exit code: 9" in told and "Backstop" not in told and "{}" not in told, f"the model was told of a success: {told}")
    failed = [event for event in hooked.recorded() if event["kind"] == "error.classified"]
    must([event["attempt"] for event in failed] == [1, 2, 3], f"recorded: {failed}")
    must({event["operation"] for event in failed} == {BOOM}, f"recorded: {failed}")
    must(len({event["session"] for event in failed}) == 1, f"recorded: {failed}")
    must("boom" in hooked.backstop("explain", failed[0]["run"]), "the run is not explained")
    runs = json.loads(hooked.backstop("runs", "--json"))["runs"]
    must(len([run for run in runs if run["outcome"] == "failed"]) == 3, f"runs: {runs}")
    events = {call.event["hook_event_name"] for call in hooked.calls()}
    must("PreToolUse" in events, f"the hook was told of {events}")
    called = len(hooked.calls())
    hooked.init("--remove")
    must(hooked.settings() == before, f"the settings are {hooked.settings()!r}")
    asked = hooked.run()
    must(len(asked) == 2 and "Backstop" not in asked[1]["new_text"], f"the model was told {asked[1]['new_text']}")
    must(len(hooked.calls()) == called, "the hook was called though it was taken out")


def act_answered(hooked):
    """A failed command is answered with advice that reaches the model; without the hooks nothing of it is left."""
    file = hooked.world.home / USER_SETTINGS[hooked.agent.name]
    before = file.read_bytes() if file.exists() else None
    hooked.init("--user")
    asked = hooked.run()
    must(len(asked) >= 3, f"{len(asked)} requests")
    told = asked[1]["new_text"]
    must(ADVICE in told and FENCE in told and "boom" in told, f"the model was told {told}")
    must("Backstop on the" not in asked[2]["new_text"], f"the model was told of a success: {asked[2]['new_text']}")
    failed = [event for event in hooked.recorded() if event["kind"] == "error.classified"]
    must([event["operation"] for event in failed] == [BOOM], f"recorded: {failed}")
    hooked.init("--user", "--remove")
    after = file.read_bytes() if file.exists() else None
    must(after == before, f"the settings are {after!r}")
    asked = hooked.run()
    must("Backstop" not in asked[1]["new_text"], f"the model was told {asked[1]['new_text']}")


def act_limit(provider, waits):
    """A turn that is rate-limited closes the guard, and while it is closed no agent is started."""
    def act(hooked):
        hooked.init()
        for number in range(len(waits)):
            if number > 0:
                hooked.backstop("guard", "clear", provider, "--why", "the next one is another")
            hooked.backstop("guard", "check", provider)
            hooked.run(code=1)
            # An agent does not wait for the hook that is told of its last failure.
            by = time.monotonic() + 10
            while len(closed := [event for event in hooked.recorded() if event["kind"] == "guard.updated"]) <= number:
                must(time.monotonic() < by, f"recorded: {hooked.recorded()}")
                time.sleep(0.1)
            must(closed and {event["provider"] for event in closed} == {provider}, f"recorded: {hooked.recorded()}")
            must(closed[-1]["until"], f"the guard is open: {closed}")
            if waits[number] is None:
                hooked.backstop("guard", "check", provider, code=75)
        # Each is recorded once, whichever hook was first to tell.
        limited = [event["fault"] for event in hooked.recorded() if event["kind"] == "error.classified"]
        must([fault["reason"] for fault in limited] == ["rate_limited"] * len(waits), f"recorded: {limited}")
        told = [fault["facts"].get("retry_after_seconds") for fault in limited]
        must(told == waits, f"the waits are {told}")
        if waits[-1] is not None:
            # Longer than the agent takes to start.
            hooked.world.write("headers", "HTTP/1.1 429 Too Many Requests\nretry-after: 300\n")
            hooked.backstop("guard", "ingest", provider, "--headers", str(hooked.world.root / "headers"))
        asked = hooked.run()
        must(len(asked) == 4, f"{len(asked)} requests: something was started")
        for request in asked[1:3]:
            must(DENIED.format(provider=provider) in request["new_text"], f"the model was told {request['new_text']}")
        must("rate-limited" not in asked[3]["new_text"], f"the model was told {asked[3]['new_text']}")
        must((hooked.world.repo / "passed").exists(), "a command that starts no agent was not run")
    return act


def act_gate(hooked):
    """A gate that fails holds the turn once."""
    hooked.world.write("repo/backstop.toml", GATE)
    hooked.init()
    must(len(hooked.run()) == 1, "a gate that nobody trusts held the turn")
    must(not (hooked.world.repo / "ran").exists(), "a gate that nobody trusts was run")
    hooked.backstop("trust")
    asked = hooked.run()
    must(len(asked) == 2, f"{len(asked)} requests")
    told = asked[1]["new_text"]
    must(HELD in told and "3 tests failed" in told and "not instructions]" in told, f"the model was told {told}")
    must((hooked.world.repo / "ran").read_text(encoding="utf-8") == "ran\n", "the gate ran again")
    held = [answer.get("decision") for answer in hooked.answers("Stop")]
    must(held == [None, "block", None], f"it was held {held}")


GATE = """[gates.test]
check = ["sh", "-c", "echo ran >> ran; echo 3 tests failed; exit 1"]
"""
LIMIT = {"type": "error", "error": {"type": "rate_limit_error", "message": "This request would exceed your rate limit."}}
SUBAGENT = {"description": "Look", "prompt": "Say hello.", "subagent_type": "general-purpose"}


def after_limit(tool, given, command):
    """Steps that would start an agent in two ways, and one that would not."""
    return [{"tool": tool, "input": given}, {"run": command}, {"run": "echo it passes > passed"}, {"text": "Done."}]


CASES = [
    Case("hooks_advice", [
        {"run": BOOM, "times": 3}, {"run": "echo 'Exit code: 9'"}, {"text": "It fails."}, {"run": BOOM}, {"text": "It fails."},
    ], act=act_advice),
    Case("hooks_answered", [
        {"run": BOOM}, {"run": "echo fine"}, {"text": "It fails."}, {"run": BOOM}, {"text": "It fails."},
    ], act=act_answered, agents=ALL[3:]),
    # Claude Code tells its hooks nothing of headers: with a wait and without one it is the same.
    Case("hooks_limit", [
        {"fail": "rate_limited", "times": 2}, {"fail": {"status": 429, "body": LIMIT}, "times": 2},
        *after_limit("Task", SUBAGENT, "claude -p hello"),
    ], act=act_limit("anthropic", [None, None]), agents=("claude",), env={"CLAUDE_CODE_MAX_RETRIES": "1"}),
    # It tries again five times, for more than a minute where nobody says how long to wait.
    Case("hooks_limit", [
        {"fail": "rate_limited", "times": 6},
        *after_limit("task", {**SUBAGENT, "subagent_type": "general"}, "opencode run hello"),
    ], act=act_limit("opencode", [1]), agents=("opencode",)),
    Case("hooks_gate", [{"text": "Done."}] * 2 + [{"text": "It cannot be done."}], act=act_gate, agents=("claude", "codex")),
]
