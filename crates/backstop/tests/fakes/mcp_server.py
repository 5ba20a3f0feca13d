#!/usr/bin/env python3
"""A scripted MCP server on standard streams, for tests. What it does is told by its arguments.

  mcp_server.py [BEHAVIOUR...]

Behaviours at the start:   exit-at-start, never-initialize, modern (2026-07-28 only), garbage-first,
stubborn (ignores SIGINT and SIGTERM, and stays when its input has ended), library (has resources
and prompts), evil (a description with control characters), huge (a list of tools of 9 MiB), growing
(one more tool after `grow` was called), related (what it asks names the call), odd (definitions with members of the
wrong kind; has resources and prompts)
Tools, each with its name: echo (read-only), add (typed), fail, fail-twice, invalid, rate-limited,
hang (read-only), hang-once, progress, die (ends the process), die-once (read-only), lost (ends the
process after it has written to the log), complain (fails with the words that it is given), twice (answers twice), other-id (answers another id
first), flood (many log messages), partial (warnings), ask (elicitation), sample (sampling), logs (a
log message of each of two levels), mute (closes its output), count (what was called), spam
(progress without end), grow (changes the list of tools).
Every call is appended to the file named by MCP_LOG.
"""
import json, os, signal, sys, time, threading

behaviours = set(sys.argv[1:])
log_file = os.environ.get("MCP_LOG")
state_dir = os.path.dirname(log_file) if log_file else "."
lock = threading.Lock()


def send(message):
    with lock:
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()


def log(line):
    if log_file:
        with open(log_file, "a") as out:
            out.write(line + "\n")


def first_time(name):
    """Whether this is the first time, over all processes that share the log."""
    path = os.path.join(state_dir, "seen-" + name)
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL))
        return True
    except FileExistsError:
        return False


def tool(name, read_only=False, idempotent=False, properties=None, required=(), **more):
    schema = {"type": "object", "properties": properties or {}, "required": list(required)}
    if properties is not None:
        schema["additionalProperties"] = False
    annotations = {}
    if read_only:
        annotations["readOnlyHint"] = True
    if idempotent:
        annotations["idempotentHint"] = True
    return {"name": name, "description": "the tool " + name, "inputSchema": schema,
            "annotations": annotations, "x-unknown": {"kept": True}, **more}


TEXT = {"message": {"type": "string"}}
TOOLS = [
    tool("echo", read_only=True, properties=TEXT, required=["message"]),
    tool("add", read_only=True, properties={"a": {"type": "number"}, "b": {"type": "number"},
                                            "note": {"type": "string"}}, required=["a", "b"]),
    tool("fail"), tool("fail-read", read_only=True), tool("fail-twice", read_only=True),
    tool("invalid", properties=TEXT), tool("rate-limited"), tool("hang", read_only=True),
    tool("hang-write"), tool("hang-once", read_only=True), tool("progress"), tool("die"),
    tool("die-once", read_only=True), tool("lost"), tool("twice"), tool("other-id"), tool("flood"),
    tool("partial"), tool("ask"), tool("count", read_only=True), tool("freeze", read_only=True),
    tool("secret", properties={"token": {"type": "string"}}),
    tool("json", read_only=True), tool("auth"), tool("denied"), tool("click"),
    tool("complain", properties={"message": {"type": "string"}, "as": {"type": "string"}}),
    tool("sample"), tool("logs", read_only=True), tool("mute"), tool("spam", read_only=True), tool("grow"),
]
waiting = {}
next_id = [1000]
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
listening = []


def text(words, **more):
    return {"content": [{"type": "text", "text": words}], **more}


def error(words):
    return text(words, isError=True)


def ask(method, params):
    next_id[0] += 1
    number = next_id[0]
    done = threading.Event()
    waiting[number] = [done, None]
    send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
    done.wait(30)
    return waiting.pop(number)[1]


class Refused(Exception):
    pass


def call(request_id, params):
    name, arguments = params["name"], params.get("arguments") or {}
    meta = params.get("_meta") or {}
    log("call " + name + " " + json.dumps(arguments, sort_keys=True))
    if name == "echo":
        if arguments["message"].startswith("wide "):
            return text('{"wide": "%s", "last": "z"}' % ("x" * int(arguments["message"][5:])))
        return text(arguments["message"], _meta={"kept": 1})
    if name == "add":
        return {**text(str(arguments["a"] + arguments["b"])),
                "structuredContent": {"sum": arguments["a"] + arguments["b"]}}
    if name in ("fail", "fail-read"):
        return error("element not found: it is gone")
    if name == "fail-twice":
        return error("boom") if first_time("a") or first_time("b") else text("at last")
    if name == "invalid":
        return error("MCP error -32602: Invalid arguments for tool invalid")
    if name == "rate-limited":
        return error("429 rate limit exceeded, retry after 1 seconds") if first_time("limit") else text("let in")
    if name in ("hang", "hang-write"):
        time.sleep(3600)
    if name == "hang-once":
        if first_time("hang"):
            time.sleep(3600)
        return text("quick now")
    if name == "progress":
        token = meta.get("progressToken")
        for step in range(1, 6):
            send({"jsonrpc": "2.0", "method": "notifications/progress",
                  "params": {"progressToken": token, "progress": step, "total": 5, "message": "step %d" % step}})
            time.sleep(float(os.environ.get("MCP_STEP", "0.01")))
        return text("done")
    if name in ("die", "lost"):
        sys.stderr.write("loading the last page\nfatal: it all ends here\n")
        sys.stderr.flush()
        os._exit(7)
    if name == "die-once":
        if first_time("die"):
            os._exit(7)
        return text("alive again")
    if name == "twice":
        send({"jsonrpc": "2.0", "id": request_id, "result": text("first")})
        return text("second")
    if name == "other-id":
        send({"jsonrpc": "2.0", "id": 999999, "result": text("not yours")})
        send({"jsonrpc": "2.0", "id": "text", "result": text("not yours")})
        return text("yours")
    if name == "flood":
        for n in range(20000):
            send({"jsonrpc": "2.0", "method": "notifications/message",
                  "params": {"level": "info", "data": "line %d %s" % (n, "x" * 100)}})
        return text("dry again")
    if name == "partial":
        return {**text("two of three"), "structuredContent": {"warnings": ["one is old"], "errors": [{"message": "one is gone"}]}}
    if name == "ask" and "modern" in behaviours:
        if "inputResponses" not in params:
            return {"resultType": "input_required", "requestState": "state-1",
                    "inputRequests": {"q": {"method": "elicitation/create", "params": {"message": "which one?"}}}}
        return text("answered: " + json.dumps([params["inputResponses"], params["requestState"]], sort_keys=True))
    if name == "ask":
        question = {"message": "which one?", "requestedSchema": {"type": "object", "properties": {}}}
        if "related" in behaviours:
            question["_meta"] = {"progressToken": meta.get("progressToken")}
        time.sleep(float(arguments.get("after", 0)))
        answer = ask("elicitation/create", question)
        return text("answered: " + json.dumps(answer, sort_keys=True))
    if name == "sample":
        answer = ask("sampling/createMessage", {"messages": [{"role": "user", "content": {"type": "text", "text": "say it"}}],
                                                "maxTokens": 5})
        return text("sampled: " + json.dumps(answer, sort_keys=True))
    if name == "logs":
        log("level in the call: " + str(meta.get("io.modelcontextprotocol/logLevel")))
        for level in ("debug", "error"):
            send({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": level, "logger": "fake", "data": "a line"}})
        return text("logged")
    if name == "spam":
        for step in range(1000000):
            send({"jsonrpc": "2.0", "method": "notifications/progress",
                  "params": {"progressToken": meta.get("progressToken"), "progress": step, "message": "y" * 200}})
    if name == "grow":
        TOOLS.append(tool("grown"))
        for subscription in [None] if "modern" not in behaviours else listening:
            send({"jsonrpc": "2.0", "method": "notifications/tools/list_changed",
                  **({"params": {"_meta": {SUBSCRIPTION: subscription}}} if subscription else {})})
        return text("grown")
    if name == "mute":
        os.close(1)
        time.sleep(3600)
    if name == "count":
        with open(log_file) as lines:
            return text(str(sum(1 for line in lines if line.startswith("call " + arguments.get("of", "")))))
    if name == "freeze":
        frozen.set()
        time.sleep(3600)
    if name == "bare":
        return text(json.dumps(arguments))
    if name == "listing":
        return {**text("[1]"), "structuredContent": [1]}
    if name == "json":
        return text(json.dumps({"items": [{"id": 7}, {"id": 8}]}))
    if name == "auth":
        return error("401 Unauthorized: Bad credentials")
    if name == "denied":
        return error("EACCES: permission denied, open '/root/x'")
    if name == "click":
        return error("it did not work")
    if name == "complain" and arguments.get("as") == "progress":
        send({"jsonrpc": "2.0", "method": "notifications/progress", "params":
              {"progressToken": meta.get("progressToken"), "progress": 1, "message": arguments["message"]}})
        time.sleep(3600)
    if name == "complain" and arguments.get("as") == "rpc":
        raise Refused(arguments["message"])
    if name == "complain":
        return error(arguments["message"])
    if name == "secret":
        os._exit(9)
    return None


frozen = threading.Event()


def answer(message):
    method, request_id, params = message["method"], message.get("id"), message.get("params") or {}
    if method == "initialize":
        log("initialize " + json.dumps(params.get("capabilities"), sort_keys=True))
        if "never-initialize" in behaviours:
            return
        if "modern" in behaviours:
            send({"jsonrpc": "2.0", "id": request_id, "error": {"code": -32022, "message": "unsupported version",
                  "data": {"supported": ["2026-07-28"]}}})
            return
        result = {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {"listChanged": True}, "logging": {}},
                  "serverInfo": {"name": "fake", "version": "1"}, "instructions": os.environ.get("MCP_SAYS", "be gentle")}
        if "library" in behaviours or "odd" in behaviours:
            result["capabilities"].update({"resources": {}, "prompts": {}})
    elif method == "server/discover":
        result = {"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {"listChanged": True}},
                  "ttlMs": 0, "cacheScope": "private"}
    elif method == "subscriptions/listen" and "modern" in behaviours:
        listening.append(request_id)
        log("listen " + json.dumps(params["notifications"], sort_keys=True))
        send({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged",
              "params": {"notifications": params["notifications"], "_meta": {SUBSCRIPTION: request_id}}})
        return
    elif method == "ping":
        result = {}
    elif method == "logging/setLevel":
        log("level " + params["level"])
        result = {}
    elif method == "tools/list":
        log("list")
        tools = TOOLS if "changed" not in behaviours else [{**t, "description": "another " + t["name"]} for t in TOOLS]
        if "evil" in behaviours:
            tools = [{**t, "title": "a\u202eb", "description": "one\n\ttwo\x1b[31m\u202e\u2066three"} for t in tools]
        if "huge" in behaviours:
            tools = [{**t, "description": "x" * (1 << 20)} for t in TOOLS[:9]]
        if "odd" in behaviours:
            tools = [tool("echo"), {"name": "bare"}, {"name": "nulls", "title": None, "inputSchema": None, "outputSchema": None},
                     tool("listing", outputSchema={"type": "array"}), tool("flags", title=5, icons="x"), {"title": "nameless"}, 5]
        start = int(params.get("cursor") or 0)
        result = {"tools": tools[start:start + 10]}
        if start + 10 < len(tools):
            result["nextCursor"] = str(start + 10)
        if "modern" in behaviours:
            assert (params.get("_meta") or {}).get("io.modelcontextprotocol/protocolVersion") == "2026-07-28", params
            result["resultType"] = "complete"
    elif method == "resources/list" and "library" in behaviours:
        result = {"resources": [{"uri": "memo://one", "name": "one", "x-unknown": 1}]}
    elif method == "resources/templates/list" and "library" in behaviours:
        result = {"resourceTemplates": [{"uriTemplate": "memo://{name}", "name": "memo"}]}
    elif method == "prompts/list" and "odd" in behaviours:
        result = {"prompts": [{"name": "one", "arguments": "x"}, {"title": "nameless"}]}
    elif method == "resources/list" and "odd" in behaviours:
        result = {"resources": [{"uri": "memo://one"}, {"name": "without an address"}]}
    elif method == "resources/read" and "library" in behaviours:
        result = {"contents": [{"uri": params["uri"], "text": "read " + params["uri"]}]}
    elif method == "prompts/list" and "library" in behaviours:
        result = {"prompts": [{"name": "plain"}, {"name": "with.dots and spaces"}]}
    elif method == "prompts/get" and "library" in behaviours:
        words = "got " + params["name"] + json.dumps(params.get("arguments"))
        result = {"messages": [{"role": "user", "content": {"type": "text", "text": words}}]}
    elif method == "tools/call":
        try:
            result = call(request_id, params)
        except Refused as why:
            send({"jsonrpc": "2.0", "id": request_id, "error": {"code": -32000, "message": str(why), "data": {"why": str(why)}}})
            return
        if result is None:
            send({"jsonrpc": "2.0", "id": request_id, "error": {"code": -32602, "message": "Unknown tool: " + params["name"]}})
            return
        if "modern" in behaviours:
            result.setdefault("resultType", "complete")
    else:
        send({"jsonrpc": "2.0", "id": request_id, "error": {"code": -32601, "message": "Method not found"}})
        return
    send({"jsonrpc": "2.0", "id": request_id, "result": result})


if "exit-at-start" in behaviours:
    sys.stderr.write("Error: Cannot find module 'left-pad'\n")
    sys.exit(1)
if "garbage-first" in behaviours:
    print("Server is starting up!\n{not json\n[]", flush=True)
if "stubborn" in behaviours:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
log("start %d" % os.getpid())
for line in sys.stdin:
    if frozen.is_set():
        time.sleep(3600)
    message = json.loads(line)
    if "method" not in message:
        entry = waiting.get(message.get("id"))
        if entry:
            entry[1] = message.get("result", message.get("error"))
            entry[0].set()
        continue
    if "id" not in message:
        log("notification " + message["method"])
        continue
    threading.Thread(target=answer, args=(message,), daemon=True).start()
if "stubborn" in behaviours:
    time.sleep(3600)
log("stop %d" % os.getpid())
