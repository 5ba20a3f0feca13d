"""How each agent is prepared, called and read. What it needs, and why, stands in `run.py`.

It starts nothing: `prepare` writes into the home of a `World` and says what the environment must have, `argv` is the command
line, `said` reads the output.
"""

import json
from dataclasses import dataclass, field


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
    # What its environment has instead where it uses a subscription; none: a variable that it must not have.
    subscription: dict = field(default_factory=dict)


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


def gemini_prepare(world):
    world.write("home/.gemini/settings.json", json.dumps({
        "security": {"auth": {"selectedType": "gemini-api-key"}}, "privacy": {"usageStatisticsEnabled": False},
        "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False}, "telemetry": {"enabled": False}}))
    return {"GEMINI_API_KEY": fake_key(), "GOOGLE_GEMINI_BASE_URL": world.url(), "GEMINI_MODEL": "gemini-2.5-pro"}


def gemini_argv(world):
    return ["gemini", "--output-format", "stream-json", "--approval-mode", "yolo", "--skip-trust",
            "--include-directories", str(world.scratch)]


def gemini_said(lines):
    said, text = Said(), ""
    for line in lines:
        if line.get("type") == "message" and line.get("role") == "assistant":
            text = text + line["content"] if line.get("delta") else line["content"]
        elif line.get("type") in ("tool_use", "tool_result"):
            text = ""
        elif line.get("type") == "result":
            error = line.get("error") or {}
            said = Said(line["status"] == "success", text or error.get("message", ""), status_in(json.dumps(error)))
    return said


def status_in(text):
    """The HTTP status that a message names, of those that cases are about."""
    return next((code for code in ("401", "429") if code in text), "")


def copilot_prepare(world):
    return {
        "COPILOT_PROVIDER_BASE_URL": world.url("/v1"), "COPILOT_PROVIDER_TYPE": "openai",
        "COPILOT_PROVIDER_API_KEY": fake_key(), "COPILOT_MODEL": "fake-model", "COPILOT_OFFLINE": "true",
        "COPILOT_AUTO_UPDATE": "false",
    }


def copilot_argv(world):
    return ["copilot", "--output-format", "json", "--allow-all-tools", "--no-ask-user", "--add-dir", str(world.scratch)]


def copilot_said(lines):
    said = Said()
    for line in lines:
        if line.get("type") == "assistant.message" and line["data"].get("content"):
            said.text = line["data"]["content"]
        elif line.get("type") == "session.error":
            said = Said(False, line["data"].get("message", ""), str(line["data"].get("statusCode") or ""))
        elif line.get("type") == "result" and said.ok is None:
            said.ok = line.get("exitCode") == 0
    return said


def qwen_prepare(world):
    world.write("home/.qwen/settings.json", json.dumps({
        "security": {"auth": {"selectedType": "openai"}}, "privacy": {"usageStatisticsEnabled": False},
        "memory": {"enableManagedAutoMemory": False, "enableManagedAutoDream": False},
        "general": {"disableAutoUpdate": True, "enableAutoUpdate": False, "disableUpdateNag": True}, "telemetry": {"enabled": False},
        # Without it Qwen Code writes the file anew, in its own form.
        "$version": 4}))
    return {"OPENAI_API_KEY": fake_key(), "OPENAI_BASE_URL": world.url("/v1"), "OPENAI_MODEL": "fake-model"}


def qwen_argv(world):
    return ["qwen", "--output-format", "stream-json", "--approval-mode", "yolo", "--add-dir", str(world.scratch)]


def qwen_said(lines):
    said = claude_said(lines)
    if said.ok is False and not said.status:
        result = next(line for line in lines if line.get("type") == "result")
        said.status = status_in(json.dumps(result))
    return said


AGENTS = [
    # It reads the windows of a subscription only where it is logged in to one.
    Agent("claude", claude_prepare, claude_argv, claude_said,
          {"ANTHROPIC_API_KEY": None, "CLAUDE_CODE_OAUTH_TOKEN": fake_key()}),
    Agent("codex", codex_prepare, codex_argv, codex_said),
    Agent("opencode", opencode_prepare, opencode_argv, opencode_said),
    Agent("gemini", gemini_prepare, gemini_argv, gemini_said),
    Agent("copilot", copilot_prepare, copilot_argv, copilot_said),
    Agent("qwen", qwen_prepare, qwen_argv, qwen_said),
]
