"""Real MCP servers behind the gateway, and real clients in front of it.

Servers: server-everything, server-filesystem, server-memory, mcp-server-time, mcp-server-git.
Clients: the Python client in both modes, over standard streams and over HTTP, and the Inspector's
command line. Called by .ci/mcp-peers, which installs them.
"""
import argparse, asyncio, json, os, pathlib, re, signal, subprocess, sys, tempfile

from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

parser = argparse.ArgumentParser()
parser.add_argument("--peers", required=True, type=pathlib.Path)
parser.add_argument("--backstop", required=True)
args = parser.parse_args()
backstop = str(pathlib.Path(args.backstop).resolve())
modules = args.peers / "node_modules/@modelcontextprotocol"
scratch = pathlib.Path(tempfile.mkdtemp(prefix="backstop-mcp-"))
project = scratch / "project"
project.mkdir()
env = {**os.environ, "BACKSTOP_STATE_DIR": str(scratch / "state"), "HOME": str(scratch)}
failures = []


def check(name, holds, seen=""):
    print(("ok      " if holds else "FAILED  ") + name, "" if holds else repr(seen)[:500])
    if not holds:
        failures.append(name)


def run(*words, code=0):
    done = subprocess.run([backstop, *words], cwd=project, env=env, capture_output=True, text=True, timeout=120)
    check("backstop " + " ".join(words)[:60], done.returncode == code, done.stdout + done.stderr)
    return done


def node(name, *more):
    words = json.dumps([str(modules / name / "dist/index.js"), *more])
    return f'command = "node"\nargs = {words}\n'


(project / "backstop.toml").write_text(
    "[mcp.everything]\n" + node("server-everything", "stdio")
    + "[mcp.hasty]\n" + node("server-everything", "stdio") + 'timeout = "1s"\n'
    + "[mcp.fs]\n" + node("server-filesystem", str(project))
    + "[mcp.memory]\n" + node("server-memory") + f'env = {{ MEMORY_FILE_PATH = "{scratch}/memory.jsonl" }}\n'
    + f'[mcp.time]\ncommand = "{args.peers}/py/bin/mcp-server-time"\n'
    + f'[mcp.git]\ncommand = "{args.peers}/py/bin/mcp-server-git"\n'
)
(project / "a.txt").write_text("hello\n")
subprocess.run(["git", "init", "-q", str(project)], check=True)


def alive():
    """The processes that the servers have left."""
    found = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True).stdout
    return [line for line in found.splitlines() if str(scratch) in line or ("server-everything/dist" in line and str(args.peers) in line)]


async def with_client(client, name):
    async with client as c:
        tools = (await c.list_tools()).tools
        servers = {tool.name.split("__")[0] for tool in tools}
        check(name + ": tools of all servers", {"everything", "fs", "memory", "time", "git"} <= servers, servers)
        echo = await c.call_tool("everything__echo", {"message": "hi"})
        check(name + ": echo", echo.content[0].text == "Echo: hi", echo)
        steps = []

        async def progressed(step, total, message):
            steps.append(step)

        await c.call_tool("everything__trigger-long-running-operation", {"duration": 1, "steps": 4}, progress_callback=progressed)
        check(name + ": progress complete and in order", steps == [1, 2, 3, 4], steps)
        content = await c.call_tool("everything__get-structured-content", {"location": "New York"})
        check(name + ": structured content", "temperature" in content.structured_content, content)
        image = await c.call_tool("everything__get-tiny-image", {})
        check(name + ": an image passes", any(block.type == "image" for block in image.content), image)
        wrong = await c.call_tool("everything__echo", {})
        check(name + ": invalid parameters", wrong.is_error and wrong.structured_content["reason"] == "invalid_parameters", wrong)
        unknown = await c.call_tool("everything__ecko", {})
        check(name + ": tool not found", "everything__echo" in unknown.content[0].text, unknown)
        zone = await c.call_tool("time__get_current_time", {"timezone": "Mars/Olympus"})
        check(name + ": execution failure", zone.is_error and zone.structured_content["attempts"] == 3, zone)
        late = await c.call_tool("hasty__trigger-long-running-operation", {"duration": 30, "steps": 150})
        check(name + ": timeout", late.is_error and late.structured_content["reason"] == "timeout", late)
        check(name + ": a timeout has what arrived", "progress" in (late.structured_content["partial"] or ""), late)
        items = [{"id": "a", "tool": "everything__echo", "arguments": {"message": "x"}}, {"id": "b", "tool": "everything__echo"}]
        part = await c.call_tool("backstop_batch", {"items": items})
        counts = (part.structured_content["succeeded"], part.structured_content["failed"])
        check(name + ": partial success", counts == (1, 1) and "partial_success" in part.content[0].text, part)
        read = await c.call_tool("fs__read_text_file", {"path": str(project / "a.txt")})
        check(name + ": a file is read", "hello" in read.content[0].text, read)
        outside = await c.call_tool("fs__read_text_file", {"path": "/etc/passwd"})
        check(name + ": outside is denied", outside.is_error, outside)
        status = await c.call_tool("git__git_status", {"repo_path": str(project)})
        check(name + ": git status", not status.is_error, status)
        made = await c.call_tool("memory__create_entities", {"entities": [{"name": name, "entityType": "t", "observations": []}]})
        check(name + ": memory", not made.is_error, made)
        prompts = (await c.list_prompts()).prompts
        check(name + ": prompts", any(p.name == "everything__simple-prompt" for p in prompts), prompts)
        resources = (await c.list_resources()).resources
        content = await c.read_resource(resources[0].uri)
        check(name + ": a resource is read", bool(content.contents), content)
        if name.endswith("auto"):
            async with c.listen(tools_list_changed=True) as changes:
                # The settings are the same, but read again.
                os.utime(project / "backstop.toml")
                change = await asyncio.wait_for(anext(changes), 30)
            check(name + ": a change that is listened for is told", type(change).__name__ == "ToolsListChanged", change)


def stdio(mode):
    parameters = StdioServerParameters(command=backstop, args=["mcp"], cwd=str(project), env=env)
    return Client(stdio_client(parameters), mode=mode)


run("tools", "doctor", code=1)  # nothing is trusted yet
run("trust")
run("tools", "doctor")
for kept in (scratch / "state").glob("work/*/tools/catalogue.json"):
    kept.write_text("{ broken")
listed = run("tools", "list")
check("a broken cache is said and made anew", "cache_invalid" in listed.stderr and "time__get_current_time" in listed.stdout, listed)
for mode in ("auto", "legacy"):
    asyncio.run(asyncio.wait_for(with_client(stdio(mode), "python " + mode), 120))

served = subprocess.Popen([backstop, "mcp", "--http", "127.0.0.1:0"], cwd=project, env=env, stderr=subprocess.PIPE, text=True)
address = None
for line in served.stderr:
    found = re.search(r"serving at (\S+)", line)
    if found:
        address = found[1]
        break
for mode in ("auto", "legacy"):
    asyncio.run(asyncio.wait_for(with_client(Client(address, mode=mode), "http " + mode), 120))
served.send_signal(signal.SIGTERM)
check("the HTTP gateway ends", served.wait(30) == 0)

inspector = subprocess.run(
    [str(args.peers / "node_modules/.bin/mcp-inspector"), "--cli", "-e", f"BACKSTOP_STATE_DIR={scratch}/state", backstop, "mcp",
     "--method", "tools/call", "--tool-name", "everything__echo", "--tool-arg", "message=hello"],
    cwd=project, env=env, capture_output=True, text=True, timeout=120)
check("the Inspector calls", "Echo: hello" in inspector.stdout, inspector.stdout + inspector.stderr)
check("nothing is left running", not alive(), alive())
print("failed: " + ", ".join(failures) if failures else "all passed")
sys.exit(1 if failures else 0)
