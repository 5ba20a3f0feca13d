//! A plan under simulated time: waits pass in a moment, agents are scripts that know the time and
//! can let it pass.

use crate::harness::{Project, Run};
use crate::plan_text::{PlanText, run};
use std::os::unix::fs::PermissionsExt;

/// What every agent can call.
const HELPERS: &str = r#"#!/bin/sh
complete() { printf '{"phase_id": "%s", "status": "complete"}' "$BACKSTOP_PHASE" > "$BACKSTOP_RESULT"; }
now() { echo $(( ($(date +%s%3N) + $(cat "$CLOCK")) / 1000 )); }
# The time at which somebody who waits so many seconds may go on, as this agent writes times.
at() { date -u -d "@$(( $(now) + $1 ))" "+$2"; }
# So many seconds pass: the agent works, or the machine sleeps.
pass() { echo $(( $(cat "$CLOCK") + $1 * 1000 )) > "$CLOCK.$$"; mv "$CLOCK.$$" "$CLOCK"; }
# How often this was called before, for each name.
calls() { n=$(cat "$PLACE/times-$1" 2>/dev/null || echo 0); echo $((n + 1)) > "$PLACE/times-$1"; echo "$n"; }
session=new; last=
for word in "$@"; do case "$last" in --resume|resume|--session) session=$word;; esac; last=$word; done
echo "$(basename "$0") $BACKSTOP_PHASE $session" >> "$PLACE/ran"
cat > /dev/null
"#;

/// What an agent prints first, in its dialect: its session is `s-1`.
pub(crate) fn begin(agent: &str) -> &'static str {
    match agent {
        "claude" => r#"echo '{"type":"system","subtype":"init","session_id":"s-1"}'"#,
        "codex" => r#"echo '{"type":"thread.started","thread_id":"s-1"}'"#,
        "gemini" => r#"echo '{"type":"init","session_id":"s-1"}'"#,
        "qwen" => r#"echo '{"type":"system","subtype":"init","session_id":"s-1"}'"#,
        // It names its session at the end.
        "copilot" => ":",
        _ => r#"echo '{"type":"step_start","sessionID":"s-1"}'"#,
    }
}

/// What an agent prints last when it is done, with what it cost where it tells that.
pub(crate) fn done(agent: &str) -> &'static str {
    match agent {
        "claude" => {
            r#"complete; echo '{"type":"result","subtype":"success","is_error":false,"result":"done","session_id":"s-1","total_cost_usd":1.25,"usage":{"input_tokens":1000,"output_tokens":10}}'"#
        }
        "codex" => {
            r#"complete; echo '{"type":"turn.completed","usage":{"input_tokens":10,"output_tokens":1}}'"#
        }
        "gemini" => {
            r#"complete; echo '{"type":"result","status":"success","stats":{"input_tokens":10,"output_tokens":1}}'"#
        }
        "qwen" => {
            r#"complete; echo '{"type":"result","subtype":"success","is_error":false,"result":"done","session_id":"s-1","usage":{"input_tokens":10,"output_tokens":1}}'"#
        }
        "copilot" => r#"complete; echo '{"type":"result","sessionId":"s-1","exitCode":0}'"#,
        _ => {
            r#"complete; echo '{"type":"step_finish","sessionID":"s-1","part":{"reason":"stop","cost":0.5,"tokens":{"input":10,"output":1}}}'"#
        }
    }
}

/// How an agent says that a limit ends in so many seconds, in its own words, and ends.
pub(crate) fn limit(agent: &str, seconds: &str) -> String {
    // What ends later than the window of a session is the limit of a week.
    let is_week = seconds.parse::<u64>().is_ok_and(|seconds| seconds > 5 * 3600);
    let (window, words) = if is_week { ("seven_day", "weekly") } else { ("five_hour", "session") };
    match agent {
        "claude" => format!(
            r#"printf '{{"type":"rate_limit_event","rate_limit_info":{{"status":"rejected","resetsAt":%s,"rateLimitType":"{window}"}}}}\n' $(( $(now) + {seconds} )); echo '{{"type":"result","is_error":true,"api_error_status":429,"result":"You have hit your {words} limit"}}'; exit 1"#
        ),
        "codex" => format!(
            r#"printf '{{"type":"turn.failed","error":{{"message":"You’ve hit your usage limit. Visit https://chatgpt.com/settings/usage to purchase more credits or try again at %s."}}}}\n' "$(at {seconds} '%b %dth, %Y %I:%M %p')"; exit 1"#
        ),
        "gemini" => format!(
            r#"printf '{{"type":"result","status":"error","error":{{"type":"Error","message":"[API Error: {{\\"error\\":{{\\"code\\":429,\\"message\\":\\"You have exhausted your capacity on this model. Your quota will reset after %ss.\\"}}}}]"}}}}\n' {seconds}; exit 1"#
        ),
        "qwen" => format!(
            r#"printf '{{"type":"result","is_error":true,"session_id":"s-1","error":{{"message":"[API Error: 429 Your token-plan 1-week quota has been exhausted. The quota will reset at %s UTC.]"}}}}\n' "$(at {seconds} '%m-%d %H:%M:%S')"; exit 1"#
        ),
        "copilot" => format!(
            r#"printf '{{"type":"session.error","data":{{"errorType":"rate_limit","statusCode":429,"message":"Sorry, you have exceeded your 5 hour session limits. Please retry after %s seconds. (user_global_rate_limited:pro)"}}}}\n' {seconds}; exit 1"#
        ),
        _ => format!(
            r#"printf '{{"type":"error","sessionID":"s-1","error":{{"name":"APIError","data":{{"message":"5-hour usage limit reached. Resets in %smin. To continue using this model now, enable usage","statusCode":429}}}}}}\n' $(( {seconds} / 60 )); exit 1"#
        ),
    }
}

/// How an agent says that its provider is overloaded, and ends.
pub(crate) fn overloaded(agent: &str) -> &'static str {
    match agent {
        "claude" => {
            r#"echo '{"type":"result","is_error":true,"api_error_status":529,"result":"API Error: 529 Overloaded"}'; exit 1"#
        }
        "codex" => {
            r#"echo '{"type":"turn.failed","error":{"message":"We are currently experiencing high demand: unexpected status 503 Service Unavailable"}}'; exit 1"#
        }
        "gemini" => {
            r#"echo '{"type":"result","status":"error","error":{"type":"Error","message":"[API Error: {\"error\":{\"code\":503,\"message\":\"The model is overloaded. Please try again later.\",\"status\":\"UNAVAILABLE\"}}]"}}'; exit 1"#
        }
        "qwen" => {
            r#"echo '{"type":"result","is_error":true,"session_id":"s-1","error":{"message":"[API Error: 503 Service Unavailable: the model is overloaded]"}}'; exit 1"#
        }
        "copilot" => {
            r#"echo '{"type":"session.error","data":{"errorType":"query","statusCode":503,"message":"503 Service Unavailable: overloaded"}}'; exit 1"#
        }
        _ => {
            r#"echo '{"type":"error","sessionID":"s-1","error":{"name":"APIError","data":{"message":"Provider is overloaded","statusCode":529}}}'; exit 1"#
        }
    }
}

/// How an agent says that the network is gone, and ends.
pub(crate) fn cut_off(agent: &str) -> &'static str {
    match agent {
        "claude" => {
            r#"echo '{"type":"result","is_error":true,"result":"API Error: Connection error. getaddrinfo EAI_AGAIN api.anthropic.com","terminal_reason":"api_error"}'; exit 1"#
        }
        "codex" => {
            r#"echo '{"type":"turn.failed","error":{"message":"stream disconnected before completion: connection reset by peer"}}'; exit 1"#
        }
        "gemini" => {
            r#"echo '{"type":"result","status":"error","error":{"type":"Error","message":"[API Error: fetch failed: connect ECONNREFUSED 127.0.0.1:1]"}}'; exit 1"#
        }
        "qwen" => {
            r#"echo '{"type":"result","is_error":true,"session_id":"s-1","error":{"message":"[API Error: Connection error. connect ECONNREFUSED 127.0.0.1:1]"}}'; exit 1"#
        }
        "copilot" => {
            r#"echo '{"type":"session.error","data":{"errorType":"query","message":"request failed: connect ECONNREFUSED 127.0.0.1:1"}}'; exit 1"#
        }
        _ => {
            r#"echo '{"type":"error","sessionID":"s-1","error":{"name":"APIError","data":{"message":"connect ECONNREFUSED 127.0.0.1:1","statusCode":503}}}'; exit 1"#
        }
    }
}

/// A command whose waits pass in a moment, where nothing else runs meanwhile.
pub(crate) fn under_simulated_time(project: &Project, run: Run) -> Run {
    let clock = project.beside("clock").display().to_string();
    run.env("BACKSTOP_CLOCK_FILE", &clock).env("CLOCK", &clock)
}

/// A project with a plan, scripts for agents, and time that is simulated.
pub(crate) struct Simulated {
    pub(crate) project: Project,
    path: String,
}

impl Simulated {
    pub(crate) fn new(name: &str, plan: &PlanText, agents: &[(&str, &str)]) -> Self {
        let project = Project::git(name);
        let bin = project.beside("bin");
        std::fs::create_dir_all(&bin).unwrap();
        std::fs::create_dir_all(project.beside("place")).unwrap();
        plan.write(&project);
        std::fs::write(project.beside("clock"), "0").unwrap();
        let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
        let this = Self { project, path };
        agents.iter().for_each(|(agent, script)| this.agent(agent, script));
        this
    }

    /// An agent, or any other program, that is found before all others.
    pub(crate) fn agent(&self, name: &str, script: &str) {
        self.program(name, &format!("{HELPERS}\n{script}\n"));
    }

    pub(crate) fn program(&self, name: &str, text: &str) {
        let file = self.project.beside("bin").join(name);
        std::fs::write(&file, text).unwrap();
        std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Any command, under simulated time.
    pub(crate) fn within(&self, run: Run) -> Run {
        under_simulated_time(&self.project, run).env("PATH", &self.path)
    }

    /// `backstop run plan.md FLAGS`.
    pub(crate) fn run(&self, flags: &[&str]) -> Run {
        self.within(run(&self.project, flags))
    }

    /// Sets the clocks forward to the beginning of a minute.
    pub(crate) fn begin_minute(&self) {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis();
        std::fs::write(self.project.beside("clock"), (60_000 - now % 60_000).to_string()).unwrap();
    }

    /// Sets the clocks forward by a minute.
    pub(crate) fn pass_minute(&self) {
        let (clock, next) = (self.project.beside("clock"), self.project.beside("clock.new"));
        let ahead: i64 = std::fs::read_to_string(&clock).unwrap().trim().parse().unwrap();
        std::fs::write(&next, (ahead + 60_000).to_string()).unwrap();
        std::fs::rename(next, clock).unwrap();
    }

    /// How long the clocks are ahead, in seconds.
    pub(crate) fn seconds(&self) -> u64 {
        let millis: u64 =
            std::fs::read_to_string(self.project.beside("clock")).unwrap().trim().parse().unwrap();
        millis / 1000
    }
}
