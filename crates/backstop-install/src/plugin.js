// Made by `backstop init --opencode`. Changes are lost: init writes it anew, and `backstop init --remove` takes it out.
//
// Tells Backstop of tools that fail and turns that break, with the JSON that Claude Code's hooks have, and passes its
// advice on. What goes wrong here never stops OpenCode.
import { spawn } from "node:child_process"

// OpenCode talks to many providers and does not say to which: its limits are kept as its own.
const CALL = ["hook", "agent", "--provider", "opencode"]
const WAIT_MS = 10_000
const ANSWER_BYTES_MAX = 1 << 20
const ERROR_CHARS_MAX = 64_000
const CALLS_MAX = 200
const TOOLS = { bash: "Bash", task: "Task" }

function ask(cwd, event) {
  return new Promise((resolve) => {
    let text = ""
    let timer
    const done = (answer) => {
      clearTimeout(timer)
      resolve(answer ?? {})
    }
    try {
      const child = spawn("backstop", CALL, { cwd, stdio: ["pipe", "pipe", "ignore"] })
      timer = setTimeout(() => {
        child.kill("SIGKILL")
        done()
      }, WAIT_MS)
      child.on("error", () => done())
      child.stdin.on("error", () => {})
      child.stdout.setEncoding("utf8")
      child.stdout.on("data", (piece) => {
        if (text.length < ANSWER_BYTES_MAX) text += piece
      })
      child.on("close", () => {
        try {
          done(JSON.parse(text))
        } catch {
          done()
        }
      })
      child.stdin.end(JSON.stringify({ cwd, ...event }))
    } catch {
      done()
    }
  })
}

function kind(error) {
  const status = error?.data?.statusCode
  if (error?.name === "ProviderAuthError" || status === 401 || status === 403) return "authentication_failed"
  if (error?.name === "MessageOutputLengthError") return "max_output_tokens"
  if (status === 402) return "billing_error"
  if (status === 429) return "rate_limit"
  if (status === 529) return "overloaded"
  if (status >= 500) return "server_error"
  if (error?.name === "ContextOverflowError" || status >= 400) return "invalid_request"
  return "unknown"
}

// What was said, and how long the server asks to wait.
function details(error) {
  const headers = Object.entries(error?.data?.responseHeaders ?? {})
  const waits = headers.filter(([name]) => /retry-after|rate-?limit/i.test(name)).map((header) => header.join(": "))
  return [error?.data?.message ?? error?.name ?? "", ...waits].join("\n").slice(0, ERROR_CHARS_MAX)
}

export const Backstop = async ({ directory }) => {
  // Calls that were told of, or that Backstop itself refused: each is told once.
  const told = new Set()
  const once = (call) => {
    if (call === undefined) return true
    if (told.has(call)) return false
    if (told.size >= CALLS_MAX) told.clear()
    told.add(call)
    return true
  }
  const failed = (tool, session, call, args, error) =>
    ask(directory, {
      hook_event_name: "PostToolUseFailure",
      session_id: session,
      tool_name: TOOLS[tool] ?? tool,
      tool_input: args,
      tool_use_id: call,
      error: String(error).slice(-ERROR_CHARS_MAX),
    })
  return {
    "tool.execute.before": async (input, output) => {
      const tool = TOOLS[input?.tool]
      if (!tool) return
      const answer = await ask(directory, {
        hook_event_name: "PreToolUse",
        session_id: input.sessionID,
        tool_name: tool,
        tool_input: output?.args,
        tool_use_id: input.callID,
      })
      const decision = answer.hookSpecificOutput
      if (decision?.permissionDecision === "deny") {
        once(input.callID)
        throw new Error(decision.permissionDecisionReason ?? "refused by backstop")
      }
    },
    "tool.execute.after": async (input, output) => {
      const exit = output?.metadata?.exit
      if (typeof exit !== "number" || exit === 0 || !once(input.callID)) return
      const error = `Exit code ${exit}\n${String(output.output ?? "").slice(-ERROR_CHARS_MAX)}`
      const answer = await failed(input.tool, input.sessionID, input.callID, input.args, error)
      const advice = answer.hookSpecificOutput?.additionalContext
      if (typeof advice === "string") output.output = `${output.output ?? ""}\n\n${advice}`
    },
    event: async ({ event }) => {
      const about = event?.properties
      if (event?.type === "session.error" && about?.error?.name !== "MessageAbortedError") {
        await ask(directory, {
          hook_event_name: "StopFailure",
          session_id: about?.sessionID,
          error: kind(about?.error),
          error_details: details(about?.error),
        })
      }
      const part = event?.type === "message.part.updated" ? about?.part : undefined
      if (part?.type === "tool" && part.state?.status === "error" && once(part.callID)) {
        await failed(part.tool, part.sessionID, part.callID, part.state.input, part.state.error)
      }
    },
  }
}
