//! What a planner's answer says: questions, a plan that waits for somebody's word, or a plan.
//!
//! Pure. CLARIFY beats CONFIRM beats PROCEED; a plan without a word means PROCEED; anything else is
//! UNKNOWN, which a campaign takes for CLARIFY and counts.

use crate::explore::objects;
use serde_json::Value;

/// The most questions that are taken from one answer.
pub const QUESTIONS_MAX: usize = 50;
/// How much of a question is kept, in characters.
const QUESTION_CHARS_MAX: usize = 1000;

/// The word of a planner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs)] // They are the planner's words.
pub enum PlannerWord {
    Clarify,
    Confirm,
    Proceed,
    Unknown,
}

impl PlannerWord {
    /// The word as it is written.
    pub fn name(self) -> &'static str {
        match self {
            PlannerWord::Clarify => "CLARIFY",
            PlannerWord::Confirm => "CONFIRM",
            PlannerWord::Proceed => "PROCEED",
            PlannerWord::Unknown => "UNKNOWN",
        }
    }
}

/// A planner's answer, read.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannerAnswer {
    /// Its word.
    pub word: PlannerWord,
    /// Its questions, each once.
    pub questions: Vec<String>,
    /// The plan in it, where there is one.
    pub plan: Option<Value>,
}

impl PlannerAnswer {
    /// Reads an answer. Any text is one.
    pub fn read(text: &str) -> Self {
        let is_plan = |object: &Value| object.get("tasks").is_some() || object.get("objective").is_some();
        // The last one counts: an answer may quote the format first.
        let plan = objects(text).filter(is_plan).last();
        let questions = questions(text);
        let said = |word: &str| text.lines().any(|line| says(line, word));
        let word = if said("CLARIFY") || (!questions.is_empty() && plan.is_none()) {
            PlannerWord::Clarify
        } else if said("CONFIRM") {
            PlannerWord::Confirm
        } else if said("PROCEED") || plan.is_some() {
            PlannerWord::Proceed
        } else {
            PlannerWord::Unknown
        };
        Self { word, questions, plan }
    }
}

/// Whether a line is the planner's word: `### Confidence: CLARIFY`, `Decision: **CLARIFY**`, or the
/// word alone.
fn says(line: &str, word: &str) -> bool {
    let plain: String = line.chars().filter(|c| !matches!(c, '#' | '*' | '`' | '_')).collect();
    let plain = plain.trim();
    let rest = ["confidence", "decision"].iter().find_map(|label| {
        let (start, rest) = plain.split_at_checked(label.len())?;
        start.eq_ignore_ascii_case(label).then(|| rest.trim_start().trim_start_matches(':').trim())
    });
    let first = rest.unwrap_or(plain).split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default();
    match rest {
        Some(_) => first.eq_ignore_ascii_case(word),
        None => plain.trim_end_matches(['.', ':']) == word,
    }
}

/// Numbered and bulleted questions below the heading "Blocking Questions".
fn questions(text: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        let trimmed = line.trim();
        let plain = trimmed.trim_start_matches(['#', '*', ' ']).to_ascii_lowercase();
        if plain.starts_with("blocking questions") {
            inside = true;
            continue;
        }
        if trimmed.starts_with('#') {
            inside = false;
        }
        let Some((item, is_numbered)) = list_item(trimmed) else { continue };
        let counts = if is_numbered { inside || item.trim_end().ends_with('?') } else { inside };
        let question: String = item.trim().chars().take(QUESTION_CHARS_MAX).collect();
        if counts && !question.is_empty() && !all.contains(&question) && all.len() < QUESTIONS_MAX {
            all.push(question);
        }
    }
    all
}

/// The text of a list item, and whether it is numbered.
fn list_item(line: &str) -> Option<(&str, bool)> {
    if let Some(item) = line.strip_prefix("- ").or_else(|| line.strip_prefix("* ")) {
        return Some((item, false));
    }
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let rest = &line[digits..];
    (digits > 0)
        .then(|| rest.strip_prefix(". ").or_else(|| rest.strip_prefix(") ")))
        .flatten()
        .map(|item| (item, true))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(text: &str) -> &'static str {
        PlannerAnswer::read(text).word.name()
    }

    #[test]
    fn words_in_every_spelling_and_their_order() {
        assert_eq!(word("### Confidence: CLARIFY"), "CLARIFY");
        assert_eq!(word("## Confidence: PROCEED\n### Confidence: CLARIFY\n"), "CLARIFY");
        assert_eq!(word("**Confidence:** CONFIRM\nPROCEED"), "CONFIRM");
        assert_eq!(word("Decision: **PROCEED**"), "PROCEED");
        assert_eq!(word("PROCEED"), "PROCEED");
        assert_eq!(word("We proceed to clarify what the weather is."), "UNKNOWN");
        assert_eq!(word("{\"objective\": \"x\", \"tasks\": []}"), "PROCEED");
        assert_eq!(word("asdf {} ]["), "UNKNOWN");
        assert_eq!(word(""), "UNKNOWN");
    }

    #[test]
    fn questions_are_read_once_each() {
        let text = "### Confidence: CLARIFY\n## Blocking Questions\n1. Which database?\n2. Which database?\n- Who pays\n* When?\n## Rest\n- no question\n3. And this?\n4. not this\n";
        let answer = PlannerAnswer::read(text);
        assert_eq!(answer.questions, ["Which database?", "Who pays", "When?", "And this?"]);
    }

    #[test]
    fn the_last_plan_counts() {
        let text = "Format: {\"objective\": \"...\", \"tasks\": []}\nMine:\n```json\n{\"objective\": \"x\", \"tasks\": [1]}\n```";
        assert_eq!(PlannerAnswer::read(text).plan.unwrap()["tasks"][0], 1);
    }
}
