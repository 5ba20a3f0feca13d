"""Cases of agents whose MCP servers stand behind the gateway: the line of the README is put into their settings, and the model
calls a tool that works, one with wrong arguments, and one whose server dies.

The server is the tests' scripted one. What the model was told is in the log of the fake API.
"""

import json
import pathlib
import sys

from case import Case
from world import HERE, must

SERVER = HERE.parent.parent / "crates/backstop/tests/fakes/mcp_server.py"
# What each agent calls a tool of the server `backstop`.
NAMES = {"claude": "mcp__backstop__{}", "codex": "mcp__backstop__{}", "opencode": "backstop_{}"}


def prepare(hooked):
    """Sets a server up in the project, and the gateway in the agent's settings as the README says."""
    world, name = hooked.world, hooked.agent.name
    # Codex gives servers only a few variables: the state folder is found by HOME.
    del hooked.env["BACKSTOP_STATE_DIR"]
    args = json.dumps([str(SERVER)])
    log = json.dumps(str(world.root / "server.log"))
    world.write("repo/backstop.toml", f"[mcp.s]\ncommand = {json.dumps(sys.executable)}\nargs = {args}\nenv = {{ MCP_LOG = {log} }}\n")
    hooked.backstop("trust")
    if name == "claude":
        hooked.agent_command("claude", "mcp", "add", "backstop", "--", "backstop", "mcp")
    elif name == "codex":
        config = world.home / ".codex/config.toml"
        # Without a person it approves nothing that may change something.
        entry = '[mcp_servers.backstop]\ncommand = "backstop"\nargs = ["mcp"]\ndefault_tools_approval_mode = "approve"\n'
        config.write_text(config.read_text(encoding="utf-8") + entry, encoding="utf-8")
    else:
        path = world.home / ".config/opencode/opencode.json"
        settings = json.loads(path.read_text(encoding="utf-8"))
        settings["mcp"] = {"backstop": {"type": "local", "command": ["backstop", "mcp"]}}
        path.write_text(json.dumps(settings), encoding="utf-8")


def act(hooked):
    """Results and failures reach the model in the gateway's words, and nothing is left when the agent has ended."""
    prepare(hooked)
    asked = hooked.run()
    told = [request["new_text"] for request in asked[1:]]
    must(len(told) == 4, f"{len(told)} answers: {told}")
    must("through the gateway" in told[0], f"the result is not there: {told[0]}")
    # Some agents show the text of a failed call to the model, others its structured content: both say all of it.
    wrong, died, many = told[1:]
    must("invalid parameters for s__add" in wrong and "missing" in wrong.lower() and "a: number" in wrong, wrong)
    must("exited with code 7" in died and "backstop_confirm" in died and "next" in died.lower(), died)
    must("Tool not found: s__ecko" in many and "succeeded" in many, many)
    calls = (hooked.world.root / "server.log").read_text(encoding="utf-8")
    must(calls.count("call echo") == 1 and calls.count("call lost") == 1 and calls.count("call add") == 1, calls)
    runs = json.loads(hooked.backstop("runs", "--json"))["runs"]
    must(len(runs) == 3 and {run["surface"] for run in runs} == {"tools"}, f"runs: {runs}")
    started = [line.split()[1] for line in calls.splitlines() if line.startswith("start ")]
    must(started and not [pid for pid in started if running(pid)], f"left running: {started}")


def running(pid):
    """Whether this server still runs."""
    try:
        return SERVER.name in pathlib.Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8")
    except OSError:
        return False


def case(agent):
    """The same for each agent, under the names that it gives to tools."""
    def call(tool, **given):
        return {"tool": NAMES[agent].format(tool), "input": given}

    # Agents refuse by themselves to call a tool that they do not know: one of a batch they cannot see.
    many = call("backstop_batch", items=[{"tool": "s__ecko", "arguments": {}}, {"tool": "s__add", "arguments": {"a": 1, "b": 2}}])
    steps = [call("s__echo", message="through the gateway"), call("s__add", a=1), call("s__lost"), many, {"text": "Done."}]
    return Case("gateway", steps, act=act, agents=(agent,))


CASES = [case(agent) for agent in NAMES]
