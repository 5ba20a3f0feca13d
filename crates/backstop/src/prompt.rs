//! What a run asks of a person.

use crate::terminal;
use backstop_core::SafeText;
use backstop_plan::start::Prompts;
use backstop_plan::workspace::CommitMode;
use backstop_report::Notice;
use std::io::{BufRead, IsTerminal, Write};

/// The longest answer that is read.
const ANSWER_BYTES_MAX: u64 = 200;
/// The longest answer to a planner's question.
const LONG_ANSWER_BYTES_MAX: u64 = 8 << 10;
/// How often a question is asked again.
const TRIES_MAX: u32 = 3;

/// Asks on the terminal, where there is one.
pub(crate) struct TerminalPrompts;

impl Prompts for TerminalPrompts {
    fn fresh_start(&self, notice: &Notice, yes: bool) -> bool {
        terminal::say(&notice.terminal(terminal::stderr_style()));
        yes || (can_ask() && confirm("Start fresh? [y/N] "))
    }

    fn run_gates(&self, gates: &[String]) -> Option<bool> {
        if !can_ask() {
            return None;
        }
        let list: String =
            gates.iter().map(|gate| format!("  {}\n", SafeText::new(gate.as_str()).line(200))).collect();
        let question = format!(
            "This project suggests checks for finished work:\n{list}Run them? `backstop trust` or --gates auto answers for good. [Y/n] "
        );
        let answer = ask(&question)?.to_ascii_lowercase();
        Some(matches!(answer.as_str(), "" | "y" | "yes"))
    }

    fn commit_mode(&self) -> Option<CommitMode> {
        const QUESTION: &str = "How are finished phases committed?\n  auto          one commit a phase, on your branch\n  \
            single        one commit at the end\n  message-only  no commits; commits.sh has one command a phase\n  \
            none          no commits\nType one of these: ";
        if !can_ask() {
            return None;
        }
        for _ in 0..TRIES_MAX {
            let answer = ask(QUESTION).unwrap_or_default();
            if let Some(commit) = CommitMode::from_name(&answer) {
                return Some(commit);
            }
            if answer.is_empty() {
                break;
            }
            terminal::say("type one of the four words\n");
        }
        None
    }
}

/// Whether somebody can be asked.
pub(crate) fn can_ask() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Asks, and gives the answer.
fn ask(question: &str) -> Option<String> {
    ask_up_to(question, ANSWER_BYTES_MAX)
}

/// Asks for a sentence or two.
pub(crate) fn ask_long(question: &str) -> Option<String> {
    ask_up_to(question, LONG_ANSWER_BYTES_MAX)
}

fn ask_up_to(question: &str, bytes_max: u64) -> Option<String> {
    terminal::say(question);
    let _ = std::io::stderr().flush();
    let mut line = String::new();
    let stdin = std::io::stdin().lock();
    std::io::Read::take(stdin, bytes_max).read_line(&mut line).ok()?;
    Some(line.trim().to_owned())
}

/// Whether the answer is yes.
pub(crate) fn confirm(question: &str) -> bool {
    ask(question).is_some_and(|answer| matches!(answer.to_ascii_lowercase().as_str(), "y" | "yes"))
}
