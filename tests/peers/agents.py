"""How each agent is prepared, called and read. What it needs, and why, stands in `run.py`.

It starts nothing: `prepare` writes into the home of a `World` and says what the environment must have, `argv` is the command
line, `said` reads the output.
"""

import json
from dataclasses import dataclass


@dataclass
class Said:
    """What an agent's output says: whether it ended well (none: it does not say), its last words, the status of a failure."""

    ok: bool | None = None
    text: str = ""
    status: str = ""


@dataclass
class Agent:
    """One agent's command line."""

    name: str
    prepare: object
    argv: object
    said: object


def fake_key():
    """Looks like a key to an agent, and like nothing to anybody else."""
    return "-".join(["fake", "key", "of", "a", "test"])


def claude_prepare(world):
    return {
        "ANTHROPIC_BASE_URL": world.url(), "ANTHROPIC_API_KEY": fake_key(), "IS_SANDBOX": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_TELEMETRY": "1", "DISABLE_ERROR_REPORTING": "1",
        "DISABLE_AUTOUPDATER": "1",
    }


def claude_argv(world):
    return ["claude", "-p", "--output-format", "stream-json", "--verbose", "--permission-mode", "acceptEdits",
            "--allowedTools", "Bash,mcp__backstop", "--add-dir", str(world.scratch)]


def claude_said(lines):
    said = Said()
    for line in lines:
        if line.get("type") == "result":
            said = Said(not line["is_error"], line.get("result", ""), str(line.get("api_error_status") or ""))
    return said


def codex_prepare(world):
    world.write("home/.codex/config.toml", f"""model = "fake-model"
model_provider = "fake"
check_for_update_on_startup = false
[analytics]
enabled = false
[features]
plugins = false
[model_providers.fake]
name = "fake"
base_url = "{world.url('/v1')}"
env_key = "FAKE_API_KEY"
wire_api = "responses"
""")
    return {"CODEX_HOME": str(world.home / ".codex"), "FAKE_API_KEY": fake_key()}


def codex_argv(world):
    return ["codex", "exec", "--json", "-s", "workspace-write", "--add-dir", str(world.scratch),
            "-o", str(world.scratch / "last-message.txt"), "-"]


def codex_said(lines):
    # Lines of type `error` stand in runs that end well, too: only the turn's end decides.
    said = Said()
    for line in lines:
        if line.get("type") == "item.completed" and line["item"].get("type") == "agent_message":
            said.text = line["item"]["text"]
        elif line.get("type") == "turn.completed":
            said.ok = True
        elif line.get("type") == "turn.failed":
            message = line["error"]["message"]
            said = Said(False, message, next((code for code in ("401", "429") if code in message), ""))
    return said


def opencode_prepare(world):
    world.write("home/.config/opencode/opencode.json", json.dumps({
        "autoupdate": False, "share": "disabled", "model": "fake/fake-model",
        "provider": {"fake": {
            "npm": "@ai-sdk/anthropic", "name": "fake", "options": {"baseURL": world.url("/v1"), "apiKey": fake_key()},
            "models": {"fake-model": {"name": "fake", "tool_call": True, "limit": {"context": 100000, "output": 4000}}}}},
    }))
    world.write("home/.config/opencode/package-lock.json",
                json.dumps({"packages": {"": {"dependencies": {"@opencode-ai/plugin": "*"}}}}))
    (world.home / ".config/opencode/node_modules").mkdir()
    return {
        "OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
        "OPENCODE_PERMISSION": json.dumps({"external_directory": {f"{world.scratch}/*": "allow"}}),
    }


def opencode_argv(_):
    return ["opencode", "run", "--format", "json", "--print-logs", "--log-level", "ERROR"]


def opencode_said(lines):
    said = Said()
    for line in lines:
        if line.get("type") == "text":
            said.text = line["part"]["text"]
        elif line.get("type") == "step_finish" and line["part"].get("reason") == "stop":
            said.ok = True
        elif line.get("type") == "error":
            data = line["error"].get("data", {})
            said = Said(False, str(data.get("message", "")), str(data.get("statusCode", "")))
    return said


AGENTS = [
    Agent("claude", claude_prepare, claude_argv, claude_said),
    Agent("codex", codex_prepare, codex_argv, codex_said),
    Agent("opencode", opencode_prepare, opencode_argv, opencode_said),
]
