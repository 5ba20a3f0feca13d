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
        let Asked { questions, is_blocking } = Asked::read(text);
        let said = |word: &str| text.lines().any(|line| says(line, word));
        let is_asked = is_blocking || (!questions.is_empty() && plan.is_none());
        let word = if said("CLARIFY") || is_asked || text.lines().any(needs_clarification) {
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

/// Whether a line is the planner's word: `### Confidence: CLARIFY`, `Decision: **CLARIFY**`, the
/// word alone, or the word and why: `CLARIFY: the goal is unclear`.
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
        None => {
            plain.strip_prefix(word).is_some_and(|after| matches!(after, "" | ".") || after.starts_with(':'))
        }
    }
}

/// Whether a line says in words that it needs to be told more: `CLARIFY, I need clarification`.
fn needs_clarification(line: &str) -> bool {
    let rest = line.split_once("CLARIFY").map(|(_, rest)| rest.to_ascii_lowercase());
    rest.and_then(|rest| rest.split_once("need").map(|(_, rest)| rest.contains("clarification")))
        .unwrap_or(false)
}

/// What an answer asks.
#[derive(Default)]
struct Asked {
    questions: Vec<String>,
    /// Whether something stands below the heading "Blocking Questions".
    is_blocking: bool,
}

impl Asked {
    /// Numbered questions anywhere; below the heading, whatever is numbered or bulleted, or else
    /// what is written there.
    fn read(text: &str) -> Self {
        let (mut asked, mut is_inside, mut prose) = (Self::default(), false, Vec::new());
        for line in text.lines().map(str::trim) {
            if let Some(rest) = blocking_heading(line) {
                is_inside = true;
                prose.extend(Some(rest).filter(|rest| !is_nothing(rest)));
                continue;
            }
            let item = list_item(line);
            let is_json = line.starts_with(['{', '}', '"']);
            let is_end = line.starts_with('#') || is_json || is_word(line);
            let is_text = !line.is_empty() && !line.starts_with("```");
            if is_end || (is_text && is_nothing(item.map_or(line, |(item, _)| item))) {
                is_inside = false;
            }
            match item {
                Some((item, _)) if is_inside => {
                    asked.is_blocking = true;
                    asked.add(item);
                }
                Some((item, true)) if item.ends_with('?') => asked.add(item),
                None if is_inside && is_text => prose.push(line),
                _ => {}
            }
        }
        if !asked.is_blocking && !prose.is_empty() {
            asked.is_blocking = true;
            asked.add(&prose.join(" "));
        }
        asked
    }

    fn add(&mut self, question: &str) {
        let question: String = question.trim().chars().take(QUESTION_CHARS_MAX).collect();
        if !self.questions.contains(&question) && self.questions.len() < QUESTIONS_MAX {
            self.questions.push(question);
        }
    }
}

/// Whether a line is one of the planner's words.
fn is_word(line: &str) -> bool {
    ["CLARIFY", "CONFIRM", "PROCEED"].iter().any(|word| says(line, word))
}

/// What follows the heading "Blocking Questions" in its line, in any of its spellings.
fn blocking_heading(line: &str) -> Option<&str> {
    const TITLE: &str = "blocking questions";
    let plain = line.trim_start_matches(['#', '*', ' ']);
    let (start, rest) = plain.split_at_checked(TITLE.len())?;
    let is_heading = plain.len() < line.len() || rest.is_empty() || rest.starts_with(':');
    (is_heading && start.eq_ignore_ascii_case(TITLE)).then(|| rest.trim_matches([':', '*', ' ']))
}

/// Whether words below the heading say that there is no question: `None.`, `(no questions)`.
fn is_nothing(text: &str) -> bool {
    if text.contains('?') {
        return false;
    }
    let plain = text.trim_matches(|c: char| !c.is_alphanumeric()).to_ascii_lowercase();
    let plain = plain.strip_prefix("there are ").unwrap_or(&plain);
    let mut words = plain.split_whitespace();
    match words.next().map(|word| word.trim_end_matches(|c: char| !c.is_alphanumeric())) {
        None | Some("n/a" | "nothing") => true,
        Some("none") => words.next() != Some("of"),
        Some("no") => words.next().is_none() || plain.contains("question"),
        Some(_) => false,
    }
}

/// The text of a list item, and whether it is numbered.
fn list_item(line: &str) -> Option<(&str, bool)> {
    let bullet = ["- ", "* ", "+ ", "• "].iter().find_map(|bullet| line.strip_prefix(bullet));
    if let Some(item) = bullet {
        return Some((item.trim(), false));
    }
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let item = line[digits..].strip_prefix(['.', ')']).filter(|_| digits > 0)?;
    // `1.5 seconds` is a number.
    (!item.starts_with(|c: char| c.is_ascii_digit())).then_some((item.trim(), true))
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
        assert_eq!(word("CLARIFY: I need more clarification"), "CLARIFY");
        assert_eq!(word("I must CLARIFY this: I need clarification."), "CLARIFY");
        assert_eq!(word("To clarify: there is no need for clarification."), "UNKNOWN");
        assert_eq!(word(""), "UNKNOWN");
    }

    #[test]
    fn questions_are_read_once_each() {
        let text = "### Confidence: CLARIFY\n## Blocking Questions\n1. Which database?\n2. Which database?\n- Who pays\n* When?\n## Rest\n- no question\n3. And this?\n4. not this\n";
        let answer = PlannerAnswer::read(text);
        assert_eq!(answer.questions, ["Which database?", "Who pays", "When?", "And this?"]);
    }

    const PLAN: &str = "```json\n{\"objective\": \"x\", \"tasks\": []}\n```";

    #[test]
    fn blocking_questions_beat_a_plan_and_the_word_proceed() {
        for (section, questions) in [
            ("## Blocking Questions\n1. Which DB?", &["Which DB?"][..]),
            ("#### blocking questions:\n1.Which DB?\n2)Where?", &["Which DB?", "Where?"]),
            ("**Blocking Questions**\n\n- The name", &["The name"]),
            ("Blocking questions: which DB?", &["which DB?"]),
            ("## Blocking Questions\nI cannot tell\nwhich DB is used.", &["I cannot tell which DB is used."]),
            (
                "## Blocking Questions\nNone of the files says which DB.",
                &["None of the files says which DB."],
            ),
            ("## Blocking Questions\n```\n1. Which DB?\n```", &["Which DB?"]),
        ] {
            for text in [
                format!("### Confidence: PROCEED\n{PLAN}\n{section}"),
                format!("{section}\n\n### Confidence: PROCEED\n{PLAN}"),
                section.to_owned(),
            ] {
                let answer = PlannerAnswer::read(&text);
                assert_eq!(
                    (answer.word.name(), answer.questions.as_slice()),
                    (
                        "CLARIFY",
                        &questions.iter().map(|question| (*question).to_owned()).collect::<Vec<_>>()[..]
                    ),
                    "{text}"
                );
            }
        }
    }

    #[test]
    fn a_section_without_a_question_asks_nothing() {
        for section in [
            "## Blocking Questions",
            "## Blocking Questions\nNone",
            "## Blocking Questions\n- None.\n",
            "## Blocking Questions: none",
            "## Blocking Questions\n(none at this time)",
            "## Blocking Questions\nNo blocking questions.",
            "## Blocking Questions\nThere are no open questions.",
            "## Blocking Questions\n\nNone.\n\nI begin with the tests.\n- and then the code",
            "## Blocking Questions\n\nN/A\n\n## Plan\n1. Build it\n- and test it",
        ] {
            let text = format!("{section}\n### Confidence: PROCEED\nWhat I will do:\n{PLAN}");
            let answer = PlannerAnswer::read(&text);
            assert_eq!((answer.word.name(), answer.questions.len()), ("PROCEED", 0), "{text}");
        }
        assert_eq!(word("Blocking questions are answered above.\n- so I go on"), "UNKNOWN");
        assert_eq!(word("It takes\n1.5 seconds, does it not?"), "UNKNOWN");
    }

    #[test]
    fn the_last_plan_counts() {
        let text = "Format: {\"objective\": \"...\", \"tasks\": []}\nMine:\n```json\n{\"objective\": \"x\", \"tasks\": [1]}\n```";
        assert_eq!(PlannerAnswer::read(text).plan.unwrap()["tasks"][0], 1);
    }
}
