"""The formats of four model APIs, for `fake_api.py`: what a request says, and what a step of its script looks like as an answer.

A function for each API turns a step into the whole message and the events that stream it. Nothing here is sent or received.
"""

import json
import re

# How agents tell a model the folder that they work in.
CWD = (r"(?:Primary working directory: |[Ww]orking directory: |<cwd>|working in the (?:directory: |following directories:\s*- )"
       r"|<workspace_root>\s*|- \*\*Workspace Directories:\*\*\s*- )([^\n<]+)")


class Asked:
    """What a model request says, in any API's words: `text` is all of it, `user` what was typed last, `new` what came
    since the model last spoke (results of tools, what hooks added). `model` and `stream` are given where the path says them."""

    def __init__(self, body, model=None, stream=None):
        self.model = model or str(body.get("model", ""))
        self.stream = bool(body.get("stream")) if stream is None else stream
        self.tools = dict(tools_of(body))
        turns = body.get("messages", body.get("input", body.get("contents", [])))
        turns = [{"role": "user", "content": turns}] if isinstance(turns, str) else turns
        parts = [texts(body.get("system", body.get("instructions", body.get("systemInstruction", ""))))]
        new, self.user = [], ""
        for turn in turns:
            blocks = turn.get("content", turn.get("output", turn.get("parts", "")))
            parts.append(texts(blocks))
            new.append(parts[-1])
            if turn.get("role") in ("assistant", "model") or str(turn.get("type", "")).endswith("_call"):
                new = []
            elif turn.get("role") == "user" and not any(mark in json.dumps(blocks) for mark in ('"tool_result"', '"functionResponse"')):
                # The last block is what was typed; those before it are what the agent adds.
                self.user = texts(blocks[-1:] if isinstance(blocks, list) else blocks)
        self.text = "\n".join(parts)
        self.new = "\n".join(new)
        folder = re.search(CWD, self.text)
        self.cwd = folder.group(1).strip() if folder else None


def tools_of(body):
    """The tools that a request declares, by name."""
    for tool in body.get("tools") or []:
        for declared in [tool, tool.get("function") or {}, *tool.get("functionDeclarations", [])] if isinstance(tool, dict) else []:
            if "name" in declared:
                yield declared["name"], declared


def texts(value):
    """All text below a content value, in order."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "\n".join(filter(None, map(texts, value)))
    if isinstance(value, dict):
        for key in ("text", "content", "output", "parts", "functionResponse", "response", "error"):
            if key in value:
                return texts(value[key])
    return ""


def call(step, asked):
    """The tool call of a step: name and input, in the words of the tools that the agent declares."""
    if "tool" in step:
        return step["tool"], step.get("input", {})
    if "write" in step:
        path, content = step["write"]["path"], step["write"]["content"]
        for name, path_key, content_key in (("Write", "file_path", "content"), ("write", "filePath", "content"),
                                            ("write_file", "file_path", "content"), ("create", "path", "file_text")):
            if name in asked.tools:
                # Some take absolute paths only.
                absolute = f"{asked.cwd}/{path}" if asked.cwd and not path.startswith("/") else path
                return name, {path_key: absolute, content_key: content}
        return run(f"printf %s {quoted(content)} > {quoted(path)}", asked.tools)
    return run(step["run"], asked.tools)


def run(command, tools):
    """A call of whatever the agent has for running commands."""
    inputs = {
        "Bash": {"command": command, "description": "Runs a command"},
        "bash": {"command": command, "description": "Runs a command"},
        "exec_command": {"cmd": command},
        "shell_command": {"command": command},
        "shell": {"command": ["bash", "-c", command]},
        "run_shell_command": {"command": command, "description": "Runs a command", "is_background": False},
    }
    name = next((name for name in inputs if name in tools), "Bash")
    return name, inputs[name]


def quoted(text):
    """A word of a POSIX shell."""
    return "'" + text.replace("'", "'\\''") + "'"


def anthropic(step, asked, serial):
    """The message that a step makes, and the events that stream it."""
    tokens_in, tokens_out = step.get("usage", [10, 5])
    if "text" in step:
        block, stop = {"type": "text", "text": step["text"]}, "end_turn"
        begun, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": step["text"]}
    else:
        name, given = call(step, asked)
        block, stop = {"type": "tool_use", "id": f"toolu_{serial:04}", "name": name, "input": given}, "tool_use"
        begun, delta = {**block, "input": {}}, {"type": "input_json_delta", "partial_json": json.dumps(given)}
    message = {"id": f"msg_{serial:04}", "type": "message", "role": "assistant", "model": asked.model, "content": [block],
               "stop_reason": stop, "stop_sequence": None, "usage": {"input_tokens": tokens_in, "output_tokens": tokens_out}}
    start = {**message, "content": [], "stop_reason": None, "usage": {"input_tokens": tokens_in, "output_tokens": 1}}
    return message, [
        {"type": "message_start", "message": start},
        {"type": "content_block_start", "index": 0, "content_block": begun},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None},
         "usage": {"output_tokens": tokens_out}},
        {"type": "message_stop"},
    ]


def responses(step, asked, serial):
    """The response that a step makes, and the events that stream it."""
    tokens_in, tokens_out = step.get("usage", [10, 5])
    identity = f"resp_{serial:04}"
    if "text" in step:
        item = {"type": "message", "id": f"msg_{serial:04}", "role": "assistant", "status": "completed",
                "content": [{"type": "output_text", "text": step["text"], "annotations": []}]}
    else:
        name, given = call(step, asked)
        item = {"id": f"fc_{serial:04}", "call_id": f"call_{serial:04}", "name": name, "status": "completed"}
        space = next((tool for tool in asked.tools if asked.tools[tool].get("type") == "namespace" and name.startswith(f"{tool}__")), None)
        if space:
            item |= {"namespace": space, "name": name.removeprefix(f"{space}__")}
        if asked.tools.get(name, {}).get("type") == "custom":
            item |= {"type": "custom_tool_call", "input": given if isinstance(given, str) else json.dumps(given)}
        else:
            item |= {"type": "function_call", "arguments": json.dumps(given)}
    usage = {"input_tokens": tokens_in, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": tokens_out,
             "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": tokens_in + tokens_out}
    response = {"id": identity, "object": "response", "model": asked.model, "status": "completed", "output": [item],
                "usage": usage}
    return response, [
        {"type": "response.created", "response": {**response, "status": "in_progress", "output": [], "usage": None}},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": response},
    ]


def chat(step, asked, serial):
    """The chat completion that a step makes, and the events that stream it."""
    tokens_in, tokens_out = step.get("usage", [10, 5])
    if "text" in step:
        message, stop = {"role": "assistant", "content": step["text"]}, "stop"
    else:
        name, given = call(step, asked)
        called = {"id": f"call_{serial:04}", "type": "function", "function": {"name": name, "arguments": json.dumps(given)}}
        message, stop = {"role": "assistant", "content": None, "tool_calls": [called]}, "tool_calls"
    usage = {"prompt_tokens": tokens_in, "completion_tokens": tokens_out, "total_tokens": tokens_in + tokens_out}
    whole = {"id": f"chatcmpl-{serial:04}", "object": "chat.completion", "created": 1, "model": asked.model}
    chunk = {**whole, "object": "chat.completion.chunk"}
    delta = {**message, "tool_calls": [{"index": 0, **call} for call in message.get("tool_calls", [])]}
    if not delta["tool_calls"]:
        del delta["tool_calls"]
    return {**whole, "choices": [{"index": 0, "message": message, "finish_reason": stop}], "usage": usage}, [
        {**chunk, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
        {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": stop}]},
        {**chunk, "choices": [], "usage": usage},
    ]


def gemini(step, asked, serial):
    """The answer of Gemini's API that a step makes; streamed it is one event."""
    tokens_in, tokens_out = step.get("usage", [10, 5])
    if "text" in step:
        part = {"text": step["text"]}
    else:
        name, given = call(step, asked)
        part = {"functionCall": {"name": name, "args": given}}
    whole = {
        "candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {"promptTokenCount": tokens_in, "candidatesTokenCount": tokens_out,
                          "totalTokenCount": tokens_in + tokens_out},
        "modelVersion": asked.model, "responseId": f"r{serial:04}",
    }
    return whole, [whole]
