#!/usr/bin/env python3
"""An agent of the Agent Client Protocol that does what its first argument says: work, or one kind of harm.

Every message that it receives is noted in $PLACE/received, one a line.
"""

import json
import os
import sys
import time

what = sys.argv[1]
place = os.environ.get("PLACE", ".")
cwd = os.getcwd()
next_id = 1000


def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def update(**fields):
    send({"method": "session/update", "params": {"sessionId": "s-1", "update": fields}})


def say(text):
    update(sessionUpdate="agent_message_chunk", content={"type": "text", "text": text})


def receive():
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    with open(f"{place}/received", "a", encoding="utf-8") as file:
        file.write(line)
    return json.loads(line)


def ask(method, params):
    global next_id
    next_id += 1
    send({"id": next_id, "method": method, "params": params})
    while True:
        message = receive()
        if message.get("id") == next_id:
            return message


def permission(path):
    options = [{"optionId": "a", "name": "Always", "kind": "allow_always"}, {"optionId": "y", "name": "Yes", "kind": "allow_once"},
               {"optionId": "n", "name": "No", "kind": "reject_once"}]
    call = {"toolCallId": "t", "title": f"Write {path}", "kind": "edit", "locations": [{"path": path}]}
    answer = ask("session/request_permission", {"sessionId": "s-1", "toolCall": call, "options": options})
    return answer["result"]["outcome"].get("optionId")


def complete():
    with open(os.environ["BACKSTOP_RESULT"], "w", encoding="utf-8") as file:
        json.dump({"phase_id": os.environ["BACKSTOP_PHASE"], "status": "complete"}, file)


def explore_plan_or_build(phase):
    """What each part of a campaign is asked for: explorers and planners answer in words, a builder works."""
    if phase.startswith("plan"):
        task = {"seq": "001", "slug": "one", "delta": ["one.txt"], "verify": "grep -q one one.txt", "budget": 9, "depends": []}
        say("### Confidence: PROCEED\n" + json.dumps({"objective": "x", "tasks": [task]}))
    elif phase == "001":
        assert permission(f"{cwd}/one.txt") == "y"
        open("one.txt", "w").write("one\n")
        complete()
    else:
        say(json.dumps({"mode": phase, "status": "ok"}))


def turn(request):
    """One prompt. Gives the stop reason."""
    if what == "work":
        update(sessionUpdate="tool_call", toolCallId="t", title="Write one.txt", kind="edit")
        assert permission(f"{cwd}/one.txt") == "y"
        assert permission("/etc/backstop-was-here") == "n"
        os.symlink("/etc", "link")
        assert permission(f"{cwd}/link/backstop-was-here") == "n"
        os.unlink("link")
        open("one.txt", "w").write("one\n")
        complete()
        say("All done.")
    elif what == "linked":
        # What the user gave it as a link is its own; a link that it makes itself is not.
        os.symlink(os.path.realpath("deps") + "/..", "up")
        assert permission(f"{cwd}/deps/x") == "y"
        assert permission(f"{cwd}/up/x") == "n"
        os.unlink("up")
        open("one.txt", "w").write("one\n")
        complete()
    elif what == "talk":
        say(json.dumps({"phase_id": os.environ["BACKSTOP_PHASE"], "status": "complete"}))
    elif what in ("resumed", "resumed-later", "null-load"):
        open("half.txt", "a").write("half\n")
        if os.environ["BACKSTOP_ATTEMPT"] == "1":
            while what == "resumed-later" and not os.path.exists(f"{place}/go"):
                time.sleep(0.02)
            send({"id": request["id"], "error": {"code": -32603, "message": "Internal error",
                                                 "data": {"errorKind": "server_error", "message": "connection reset by peer"}}})
            return None
        complete()
    elif what == "campaign":
        explore_plan_or_build(os.environ["BACKSTOP_PHASE"])
    elif what == "overflow":
        # OpenCode's log, and what it does: it compacts and goes on, without end.
        while True:
            sys.stderr.write('level=ERROR message="stream error" small=false error.error="AI_APICallError: prompt is too long"\n')
            sys.stderr.flush()
            say("Compacted.")
            time.sleep(0.05)
    elif what == "limited":
        send({"id": request["id"], "error": {"code": 429, "message": "Resource has been exhausted"}})
        return None
    elif what == "permission-loop":
        while True:
            permission("/etc/passwd")
    elif what == "unknown-requests":
        while True:
            ask("terminal/create", {})
    elif what == "flood":
        while True:
            sys.stdout.write("".join(json.dumps({"jsonrpc": "2.0", "method": "session/update", "params": {"update": {}}}) + "\n" for _ in range(500)))
    elif what == "endless-line":
        while True:
            sys.stdout.write("x" * (1 << 20))
    elif what == "stall":
        say("Let me")
        while receive().get("method") != "session/cancel":
            pass
        open(f"{place}/cancelled", "w").write("yes")
        return "cancelled"
    elif what == "deaf":
        if os.fork() == 0:
            os.setsid()
            time.sleep(600)
        time.sleep(600)
    elif what == "reads-nothing":
        # More requests than answers fit into the pipe.
        name = "x/" + "y" * 2000
        while True:
            sys.stdout.write("".join(json.dumps({"jsonrpc": "2.0", "id": n, "method": name, "params": {}}) + "\n" for n in range(100)))
    elif what == "gone":
        os._exit(0)
    return "end_turn"


def main():
    if what == "garbage":
        while True:
            print("Welcome to the agent!", flush=True)
            time.sleep(0.01)
    if what == "silent":
        time.sleep(600)
    while True:
        request = receive()
        method = request.get("method")
        if method == "initialize":
            if what == "refused":
                send({"id": request["id"], "error": {"code": -32603, "message": "boom"}})
                continue
            version = {"other-version": 7, "version-0": 0, "version-text": "1", "version-null": None}.get(what, 1)
            send({"id": request["id"], "result": {"protocolVersion": version, "agentCapabilities": {"loadSession": True}}})
        elif method in ("session/new", "session/load"):
            if method == "session/load":
                say("This was said before.")
            modes = {"currentModeId": "plan", "availableModes": [{"id": "plan", "name": "Plan"}, {"id": "acceptEdits", "name": "Edit"}]}
            if what == "no-session-id":
                send({"id": request["id"], "result": {}})
                continue
            is_null = what == "null-load" and method == "session/load"
            send({"id": request["id"], "result": None if is_null else {"sessionId": "s-1", "modes": modes}})
        elif method == "session/set_mode":
            send({"id": request["id"], "result": {}})
        elif method == "session/prompt":
            reason = turn(request)
            if reason:
                send({"id": request["id"], "result": {"stopReason": reason, "usage": {"inputTokens": 7, "outputTokens": 3}}})


main()
