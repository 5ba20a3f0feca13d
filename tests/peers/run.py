#!/usr/bin/env python3
"""Real agents' command lines against a fake API: each does one small piece of work, and fails in ways that Backstop must read.

    run.py --bin FOLDER [--agent NAME]... [--case NAME]... [--samples FOLDER] [--backstop PATH]

FOLDER holds `claude`, `codex`, `opencode`, `gemini`, `copilot` and `qwen` (`.ci/peers` installs them). An agent that cannot be started is skipped, and why is
said, and so is one that cannot do the case `work`. It fails if no agent works, or if one that works fails in another way than it
should. With `--samples` what each agent wrote is kept there. With `--backstop` the agents are driven by `backstop run`, and then
by themselves with the hooks of `backstop init` (`hooked.py`).

What an agent needs to reach the fake API on port N and nothing else. The environment is made from nothing, so that no key and no
setting of the person who runs this gets in. HOME, TMPDIR and the repository are new for every case.

all       PATH with FOLDER first, HOME, TMPDIR, LANG=C.UTF-8, GIT_CONFIG_NOSYSTEM=1
          HTTPS_PROXY=HTTP_PROXY=http://127.0.0.1:N, NO_PROXY=127.0.0.1,localhost: who wants to leave the machine is seen in the
          log as a CONNECT, and refused. A case in which that happens fails
          BACKSTOP_RESULT=a file outside the repository
claude    ANTHROPIC_BASE_URL=http://127.0.0.1:N (without /v1), ANTHROPIC_API_KEY=anything
          CLAUDE_CODE_OAUTH_TOKEN=anything in place of the key: it is logged in to a subscription. Only then does it read the
          headers of a subscription's windows, and tells when its limit ends
          IS_SANDBOX=1: root may use --permission-mode bypassPermissions
          CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1, DISABLE_TELEMETRY=1, DISABLE_ERROR_REPORTING=1, DISABLE_AUTOUPDATER=1
          CLAUDE_CODE_MAX_RETRIES=1 where it is meant to fail: by itself it tries again 10 times, over 3 minutes, even a 401
          claude -p --output-format stream-json --verbose --permission-mode acceptEdits --allowedTools Bash --add-dir SCRATCH
          Without --add-dir it may not write BACKSTOP_RESULT; without --allowedTools Bash it may not run tests. Both are
          denied silently (`permission_denials`), and the exit code is 0. SCRATCH must come last or be followed by a flag
codex     CODEX_HOME with config.toml: model, model_provider = "fake", [model_providers.fake] base_url = "http://127.0.0.1:N/v1",
          env_key = "FAKE_API_KEY", wire_api = "responses"; check_for_update_on_startup = false, [analytics] enabled = false,
          [features] plugins = false (else it asks three hosts for plugins). FAKE_API_KEY=anything
          codex exec --json -s workspace-write --add-dir SCRATCH -o SCRATCH/last-message.txt -
          Without --add-dir BACKSTOP_RESULT is on a read-only file system
opencode  .config/opencode/opencode.json: provider.fake with npm "@ai-sdk/anthropic" (it is in the binary), options.baseURL =
          "http://127.0.0.1:N/v1", options.apiKey, models; model "fake/fake-model"; autoupdate false; share "disabled"
          beside it node_modules and a package-lock.json that names its plugin package (else it asks the package registry)
          OPENCODE_DISABLE_MODELS_FETCH=1, OPENCODE_DISABLE_AUTOUPDATE=1, OPENCODE_DISABLE_LSP_DOWNLOAD=1
          OPENCODE_PERMISSION={"external_directory":{"SCRATCH/*":"allow"}}: without it the first write of BACKSTOP_RESULT is
          rejected, and that ends the run, with exit code 0
          opencode run --format json --print-logs --log-level ERROR
gemini    GEMINI_API_KEY=anything, GOOGLE_GEMINI_BASE_URL=http://127.0.0.1:N (without /v1beta), GEMINI_MODEL: with its own choice
          it first asks a small model
          .gemini/settings.json: security.auth.selectedType "gemini-api-key"; no usage statistics, no updates, no telemetry
          gemini --output-format stream-json --approval-mode yolo --skip-trust --include-directories SCRATCH
copilot   COPILOT_PROVIDER_BASE_URL=http://127.0.0.1:N/v1, COPILOT_PROVIDER_TYPE=openai, COPILOT_PROVIDER_API_KEY=anything,
          COPILOT_MODEL, COPILOT_OFFLINE=true, COPILOT_AUTO_UPDATE=false
          copilot --output-format json --allow-all-tools --no-ask-user --add-dir SCRATCH
qwen      OPENAI_API_KEY=anything, OPENAI_BASE_URL=http://127.0.0.1:N/v1, OPENAI_MODEL
          .qwen/settings.json: security.auth.selectedType "openai", memory.enableManagedAutoMemory false (else it asks its model for
          notes to keep, with tools, after each turn); no usage statistics, no updates, no telemetry
          qwen --output-format stream-json --approval-mode yolo --add-dir SCRATCH. Node 22
hooks     codex: [projects."REPOSITORY"] trust_level = "trusted", and --dangerously-bypass-hook-trust: else it runs none
          opencode: node_modules and package-lock.json in the project's .opencode, too
"""

import argparse
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
from agents import AGENTS  # noqa: E402
from agents_gateway import CASES as GATEWAY  # noqa: E402
from case import ALL, Case  # noqa: E402
from hooked import CASES as HOOKED, Hooked  # noqa: E402
from world import Failed, World, fake_api, must, supervise  # noqa: E402

AGENT_SECONDS_MAX = 120
# Where Claude Code, Codex and OpenCode tell their model which session it is.
SESSION_HEADERS = ("x-claude-code-session-id", "session-id", "x-session-id")
PROMPT = "Phase 1: write the file hello.txt. Then end with the result as JSON."
CONTENT = "hello from a peer\n"
RESULT = {"phase_id": "1", "status": "complete", "tasks": {"total": 1, "completed": 1, "done": [1]},
          "commit_message": "feat: say hello"}
PLAN = """# A plan

| Phase | Name | Depends On | Status |
|---|---|---|---|
| 1 | Greeting | - | Not Started |

## Phase 1: Greeting

- [ ] Write hello.txt
"""


class Left(Failed):
    """An agent wanted to leave the machine."""


def check_work(world, ran, said, log):
    must(ran.code == 0, f"ended with {ran.code}")
    if said is not None:
        must(said.ok is True, f"its output does not say that it ended well: {said}")
        must(json.loads(said.text) == RESULT, f"its last words are not the result: {said.text!r}")
        result = json.loads((world.scratch / "result.json").read_text(encoding="utf-8"))
        must(result == RESULT, f"BACKSTOP_RESULT holds {result}")
    must((world.repo / "hello.txt").read_text(encoding="utf-8") == CONTENT, "hello.txt holds something else")
    steps = [line["step"] for line in log if line["kind"] == "step"]
    # Held to a schema by Backstop, an agent may ask once more for its last words.
    must(steps[:3] == [1, 2, 3] and (said is None or len(steps) == 3), f"the steps were not asked for in order: {steps}")
    if said is None:
        subjects = subprocess.run(["git", "log", "--format=%s"], cwd=world.repo, capture_output=True, text=True).stdout
        must(subjects == "feat: say hello\nBegin\n", f"the commits are {subjects!r}")
        plan = (world.repo / "PLAN.md").read_text(encoding="utf-8")
        must("- [x] Write hello.txt" in plan and "| Complete " in plan, f"the plan is not ticked: {plan}")


def check_continued(world, ran, said, log):
    """The second run has gone on in the session of the first, which was refused in the middle of its work."""
    must(ran.code == 0, f"ended with {ran.code}")
    must((world.repo / "hello.txt").read_text(encoding="utf-8") == CONTENT, "hello.txt of the first session is lost")
    steps = [line["step"] for line in log if line["kind"] == "step"]
    must(steps[0] == 1 and 4 in steps and [step for step in steps if step < 4][:3] == [1, 2, 3], f"the steps were {steps}")
    events = world.root / "events.jsonl"
    sessions = [json.loads(line) for line in events.read_text(encoding="utf-8").splitlines()]
    ids = {event["session_id"] for event in sessions}
    must(len(sessions) >= 2 and len(ids) == 1, f"the sessions were {sessions}")


def check_limited(world, ran, said, log):
    """One run has met the limit, waited for its end and gone on in the same session."""
    must(ran.code == 0, f"ended with {ran.code}")
    must((world.repo / "hello.txt").read_text(encoding="utf-8") == CONTENT, "hello.txt is lost")
    steps = [line["step"] for line in log if line["kind"] == "step"]
    must(steps[0] == 1 and 2 in steps and 3 in steps, f"the steps were {steps}")
    events = [json.loads(line) for line in (world.root / "events.jsonl").read_text(encoding="utf-8").splitlines()]
    # The API has seen one session from the first request to the last, and it is the one that Backstop knows.
    asked = [line for line in log if line["kind"] == "step"]
    seen = {line["headers"].get(name) for line in asked for name in SESSION_HEADERS if name in line["headers"]}
    must({event["session_id"] for event in events} == seen and len(seen) == 1, f"the sessions were {events}, the API saw {seen}")
    # OpenCode waits by itself for as long as it is told to; the others leave that to whoever runs them.
    waits = (world.root / "waits.jsonl").read_text(encoding="utf-8").splitlines()
    must(waits or any("opencode" in line["headers"].get("user-agent", "") for line in asked), f"nobody waited, {len(asked)} requests")
    # Codex tells the end of its limit to the minute: it is tried once before.
    must(steps.count(2) <= 2, f"a closed limit was tried {steps.count(2)} times")


def check_refused(status):
    def check(world, ran, said, log):
        # Gemini CLI ends with the status modulo 256.
        must(not ran.timed_out and ran.code in (1, int(status) % 256), f"ended with {ran.code}")
        must(said.ok is False and said.status == status, f"its output does not say {status}: {said}")
        must(len(log) >= 1, "it asked for nothing")
    return check


def check_killed(world, ran, said, log):
    must(ran.code == -signal.SIGKILL, f"ended with {ran.code}")
    must(said.ok is None, f"its output says that it ended: {said}")


def check_hook(world, ran, said, log):
    told = json.loads((world.scratch / "hook.json").read_text(encoding="utf-8"))
    must(told["hook_event_name"] == "PostToolUseFailure" and told["tool_name"] == "Bash", f"the hook was told {told}")
    must(told["error"].startswith("Exit code 3") and "boom" in told["error"], f"the hook was told {told['error']!r}")
    must(any("the hook was here" in line.get("new_text", "") for line in log), "the model was not told what the hook said")
    must(ran.code == 0 and said.ok is True, f"ended with {ran.code}: {said}")


def prepare_hook(world):
    answer = {"hookSpecificOutput": {"hookEventName": "PostToolUseFailure", "additionalContext": "the hook was here"}}
    world.write("scratch/hook.sh", f"cat > \"$(dirname \"$0\")/hook.json\"\ncat <<'EOF'\n{json.dumps(answer)}\nEOF\n")
    hook = {"type": "command", "command": f"sh '{world.scratch}/hook.sh'", "timeout": 10}
    settings = {"hooks": {"PostToolUseFailure": [{"matcher": "Bash", "hooks": [hook]}]}}
    world.write("repo/.claude/settings.json", json.dumps(settings))


ONE_RETRY = {"CLAUDE_CODE_MAX_RETRIES": "1"}
CASES = [
    Case("work", [
        {"write": {"path": "hello.txt", "content": CONTENT}},
        {"write": {"path": "{result}", "content": json.dumps(RESULT)},
         "find": {"result": r"BACKSTOP_RESULT[^/\n]*(/[^\s`\"']+)"}},
        {"text": json.dumps(RESULT)},
    ], check_work, agents=ALL),
    Case("unauthorized", [{"fail": "unauthorized"}], check_refused("401"), env=ONE_RETRY, agents=ALL),
    # Gemini CLI and Qwen Code try again for minutes.
    Case("rate_limited", [{"fail": "rate_limited"}], check_refused("429"), env=ONE_RETRY, agents=ALL[:3] + ("copilot",)),
    Case("killed", [{"fail": "hang"}], check_killed, kill=True, agents=ALL),
    Case("hook", [{"run": "echo boom >&2; exit 3"}, {"text": "It failed."}], check_hook, agents=("claude",),
         prepare=prepare_hook),
]
# Refused after its first piece of work; the next run, which is told that it was cut off, is let through.
CONTINUED = Case("continued", [
    {"write": {"path": "hello.txt", "content": CONTENT}},
    {"write": {"path": "{result}", "content": json.dumps(RESULT)}, "when": "was cut off",
     "find": {"result": r"BACKSTOP_RESULT names, which is [^/\n]*(/[^\s`\"']*-2/[^\s`\"']+)"}},
    # Held to a schema, an agent may ask once more for its last words.
    {"text": json.dumps(RESULT), "when": "was cut off", "times": 4},
    {"fail": "unauthorized"},
], check_continued, times=2)
# The limit of a subscription after the first piece of work, with a reset some seconds away: the run waits for it and goes on.
LIMITED = Case("limited", [
    {"write": {"path": "hello.txt", "content": CONTENT}},
    {"fail": "usage_limit", "seconds": 15},
    {"write": {"path": "{result}", "content": json.dumps(RESULT)},
     "find": {"result": r"BACKSTOP_RESULT names, which is [^/\n]*(/[^\s`\"']+)(?![\s\S]*BACKSTOP_RESULT names)"}},
    {"text": json.dumps(RESULT), "times": 4},
], check_limited, subscription=True, seconds=240)
# Cases that need a binary of Backstop: the first three are driven by it, the others have hooks that call it.
BACKSTOP_CASES = [CASES[0], CONTINUED, LIMITED, *HOOKED, *GATEWAY]


def drive(agent, env, world, seconds=AGENT_SECONDS_MAX, kill_when=None):
    """Runs the agent as Backstop does: prompt on standard input, a clock of ours, its whole process group ended."""
    prompt = f"{PROMPT}\nBACKSTOP_RESULT: {env['BACKSTOP_RESULT']}\n"
    return supervise(agent.argv(world), prompt, env, world, seconds, kill_when)


def through_backstop(backstop):
    """The same as `drive`, by `backstop run` of a plan with one phase."""
    def drive_backstop(agent, env, world, seconds=AGENT_SECONDS_MAX, kill_when=None):
        if not (world.repo / "PLAN.md").exists():
            world.write("repo/PLAN.md", PLAN)
        return supervise([backstop, "run", "PLAN.md", "--agent", agent.name, "--commit", "auto"], "", env, world, seconds, kill_when)
    return drive_backstop


def environment(agent, case, world, folder):
    proxy = world.url()
    env = {
        "PATH": os.pathsep.join([str(folder), os.environ.get("PATH", os.defpath)]),
        **{f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER")
           for what, value in (("NAME", "Peer"), ("EMAIL", "peer@example.invalid"))},
        "HOME": str(world.home), "TMPDIR": str(world.tmp), "LANG": "C.UTF-8", "GIT_CONFIG_NOSYSTEM": "1",
        "HTTP_PROXY": proxy, "HTTPS_PROXY": proxy, "NO_PROXY": "127.0.0.1,localhost",
        "BACKSTOP_RESULT": str(world.scratch / "result.json"),
        **agent.prepare(world), **(agent.subscription if case.subscription else {}), **case.env,
    }
    return {name: value for name, value in env.items() if value is not None}


def try_case(agent, case, args):
    """Runs one case and checks what came of it."""
    with tempfile.TemporaryDirectory(prefix="peers-", ignore_cleanup_errors=True) as root:
        world = World(pathlib.Path(root).resolve())
        with fake_api(world, case.steps) as log_path:
            env = environment(agent, case, world, args.bin)
            if case.act:
                return hooked(case, Hooked(agent, world, env, log_path, args.backstop, AGENT_SECONDS_MAX))
            if case.prepare:
                case.prepare(world)
            kill_when = (lambda: '"step"' in log_path.read_text(encoding="utf-8")) if case.kill else None
            for _ in range(case.times):
                ran = args.drive(agent, env, world, case.seconds or AGENT_SECONDS_MAX, kill_when)
            if args.backstop:
                for kind, name in (("session.started", "events.jsonl"), ("wait.started", "waits.jsonl")):
                    events = [args.backstop, "events", "--kind", kind, "--json"]
                    told = subprocess.run(events, cwd=world.repo, env=env, capture_output=True, text=True)
                    world.write(name, told.stdout)
        log = [json.loads(line) for line in log_path.read_text(encoding="utf-8").splitlines()]
        if args.samples:
            keep(args.samples / f"{agent.name}-{case.name}", world, ran)
        try:
            # Backstop's own output is not an agent's.
            said = None if args.backstop else agent.said(ran.lines())
            case.check(world, ran, said, log)
        except (Failed, OSError, ValueError, KeyError) as error:
            raise Failed(f"{error}\n--- stdout\n{ran.stdout[-3000:]}\n--- stderr\n{ran.stderr[-3000:]}") from error
        stayed(log)
        return ran.seconds


def hooked(case, world):
    """Runs a case of an agent with hooks."""
    began = time.monotonic()
    world.prepare()
    try:
        case.act(world)
    except (OSError, ValueError, KeyError, IndexError, subprocess.TimeoutExpired) as error:
        raise Failed(f"{type(error).__name__}: {error}") from error
    stayed(world.log())
    return time.monotonic() - began


def stayed(log):
    """Nobody wanted to leave the machine."""
    left = sorted({line["path"] for line in log if line["method"] == "CONNECT"})
    if left:
        raise Left(f"it wanted to reach {', '.join(left)}")


def keep(folder, world, ran):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "stdout").write_text(ran.stdout, encoding="utf-8")
    (folder / "stderr").write_text(ran.stderr, encoding="utf-8")
    (folder / "exit").write_text("timed out\n" if ran.timed_out else f"{ran.code}\n", encoding="utf-8")
    for name in ("log.jsonl", "scratch/hook.json"):
        if (world.root / name).exists():
            shutil.copy(world.root / name, folder)


def why_not(agent, args):
    """Why this agent cannot be used here; none if it can."""
    if not (args.bin / agent.name).exists():
        return "not installed"
    with tempfile.TemporaryDirectory(prefix="peers-", ignore_cleanup_errors=True) as home:
        env = {"PATH": os.pathsep.join([str(args.bin), os.environ.get("PATH", os.defpath)]), "HOME": home, "TMPDIR": home}
        try:
            asked = subprocess.run([args.bin / agent.name, "--version"], env=env, stdin=subprocess.DEVNULL,
                                   capture_output=True, text=True, timeout=60)
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"cannot be started: {error}"
    if asked.returncode != 0:
        return f"cannot be started: {asked.stderr.strip()[-300:]}"
    print(f"{agent.name}: {asked.stdout.strip()}", flush=True)
    return None


def try_agent(agent, args, counts):
    """Runs the cases of one agent. One that cannot even do its work is skipped here; through Backstop that is a failure."""
    why = why_not(agent, args)
    for case in args.cases:
        if why:
            break
        if agent.name not in case.agents:
            continue
        try:
            seconds = try_case(agent, case, args)
            print(f"{agent.name} {case.name}: ok ({seconds:.1f} s)", flush=True)
            counts["passed"] += 1
        except Failed as error:
            if case.name == "work" and not args.backstop and not isinstance(error, Left):
                why = str(error)
            else:
                print(f"{agent.name} {case.name}: FAILED: {error}", flush=True)
                counts["failed"] += 1
    if why:
        print(f"{agent.name}: skipped: {why}", flush=True)
        counts["skipped"] += 1


def main():
    parser = argparse.ArgumentParser(description="Real agents against a fake API.")
    parser.add_argument("--bin", type=lambda path: pathlib.Path(path).resolve(), required=True)
    parser.add_argument("--agent", action="append", choices=[agent.name for agent in AGENTS])
    parser.add_argument("--case", action="append", choices=sorted({case.name for case in [*CASES, CONTINUED, LIMITED, *HOOKED, *GATEWAY]}))
    parser.add_argument("--samples", type=pathlib.Path)
    parser.add_argument("--backstop", type=lambda path: str(pathlib.Path(path).resolve()),
                        help="drive the agents through this binary: cases `work`, `continued` and `limited`; and put it into their hooks: cases `hooks_*`")
    args = parser.parse_args()
    args.drive = through_backstop(args.backstop) if args.backstop else drive
    args.cases = [case for case in (BACKSTOP_CASES if args.backstop else CASES) if not args.case or case.name in args.case]
    if not args.cases:
        print("none of these cases is one of this pass")
        return
    if args.backstop:
        if subprocess.run([args.backstop, "run", "--help"], stdin=subprocess.DEVNULL, capture_output=True).returncode:
            sys.exit("this backstop has no `run`")
    counts = dict.fromkeys(("passed", "failed", "skipped"), 0)
    for agent in AGENTS:
        if not args.agent or agent.name in args.agent:
            try_agent(agent, args, counts)
    print(", ".join(f"{count} {word}" for word, count in counts.items()))
    sys.exit(1 if counts["failed"] or not counts["passed"] else 0)


if __name__ == "__main__":
    main()
