//! Decides who is believed: the rule that decided, the grammar, or the learned back-off, by the
//! share of right answers that each of them has on tools that it was not made for.

use crate::grammar::{self, Finding, Reading};
use crate::learned::{self, Case, Sketch, Table, Vector};
use crate::rule::Rule;
use crate::weigh::Weigher;
use backstop_core::{Confidence, Evidence, LEARNED, Reason, SafeText, Signal, Surface};

/// From this share on, in percent, a rule is believed and nobody else is asked.
const SURE_PERCENT: u8 = 97;
/// The share of a rule that was not measured.
const UNMEASURED_PERCENT: u8 = 90;
/// The same for a rule, where nobody says which tool it was.
const UNNAMED_PERCENT: u8 = 70;
/// By how much a guess may be less sure than a rule that it contradicts, in percent, for a tool
/// that no rule was written for: the share of a rule is that of all its answers, and where the
/// model says something else, the rule is more often wrong (measured by `train -- --calibrate`).
const CONTRADICTED_PERCENT: u8 = 15;
/// From this share on, in percent, a guess that nothing is to be tried again is a reason for doubt.
const DOUBT_PERCENT: u8 = 50;
/// How sure a rule is at most that is doubted, in percent: too little for trying again.
const DOUBTED_PERCENT_MAX: u8 = 60;
/// How sure the model is at least of what is tried again because of a phrase, in percent.
const PHRASE_RETRY_PERCENT_MIN: u8 = 75;
/// Below this share, in percent, a guess is not worth saying.
const GUESS_PERCENT_MIN: u8 = 25;
/// The same for a tool that rules were written for, and know to say nothing.
const GUESS_KNOWN_PERCENT_MIN: u8 = 80;
/// The share of a rule of a user's own pack, which nobody has measured.
const USERS_PERCENT: u8 = 95;
/// From how many lines on a text is a log: the model was made from the outputs of single commands.
const LOG_LINES: u64 = 150;
/// From this weight on, a rule says something by itself.
const PHRASE_WEIGHT: u8 = 40;
/// Programs that only run others: what they ran is not known by them.
const WRAPPERS: &[&str] = &["sh", "bash", "env", "sudo", "time", "timeout", "xargs", "npx", "nice"];
/// Programs that run what somebody wrote, which is known by them as little.
const INTERPRETERS: &[&str] = &["python", "python3", "node"];
/// What an uncaught exception may be instead of a crash: trouble of the world around the program.
const WORLD: &[Reason] = &[
    Reason::NetworkTransient,
    Reason::NetworkPermanent,
    Reason::AuthError,
    Reason::PermissionDenied,
    Reason::ResourceContention,
    Reason::ResourceExhausted,
];
/// What goes before the name of a rule, for its share on tools that rules were written for.
pub(crate) const KNOWN: &str = "known ";
/// What goes before the name of a tool that rules were written for.
pub(crate) const TOOL: &str = "tool ";
/// How many words and pairs of words of a text the table must know for a guess, where no labelled
/// failure is like it.
const KNOWN_WORDS_MIN: usize = 4;
/// How much of an example's line is shown.
const EXAMPLE_BYTES_MAX: usize = 120;

/// Names of shares that hold for a kind of rules, where a rule's own was not measured.
pub(crate) fn kind_of(rule: &Rule) -> &'static str {
    match (rule.tool.is_some() || !rule.program.is_empty(), rule.weight.0) {
        (_, 80..) => "kind.code",
        (true, _) => "kind.tool",
        (false, 58..) => "kind.error",
        (false, 40..) => "kind.phrase",
        _ => "kind.circumstance",
    }
}

/// Who decided, besides rules.
#[derive(Debug)]
pub(crate) enum By {
    Rule,
    Grammar(Finding),
    Learned,
}

/// What was decided.
#[derive(Debug)]
pub(crate) struct Decided {
    pub(crate) reason: Reason,
    pub(crate) confidence: Confidence,
    pub(crate) by: By,
    /// What is cited besides matches of rules.
    pub(crate) evidence: Vec<Evidence>,
    /// What the grammar read, where it was asked.
    pub(crate) reading: Option<Reading>,
}

/// What the rules found.
pub(crate) struct Ruled<'r> {
    pub(crate) reason: Reason,
    /// The rule that decided.
    pub(crate) rule: Option<&'r Rule>,
    /// Whether it is a rule of a user's pack.
    pub(crate) is_users: bool,
    /// The rules that matched and what each stands for, the deciding one first.
    pub(crate) matched: Vec<(&'r str, Reason)>,
}

/// The share of right answers of a rule, in percent: on the tools that rules were written for, or
/// on all others.
fn share(table: Option<&Table>, ruled: &Ruled<'_>, is_known: bool) -> u8 {
    let (Some(rule), false) = (ruled.rule, ruled.reason == Reason::Unknown) else { return 0 };
    if ruled.is_users {
        return USERS_PERCENT;
    }
    let Some(table) = table else { return UNMEASURED_PERCENT };
    let of = |name: &str| if is_known { table.share(&format!("{KNOWN}{name}")) } else { table.share(name) };
    of(&rule.id).or_else(|| of(kind_of(rule))).unwrap_or(UNMEASURED_PERCENT)
}

/// What the grammar and the model see of a failure.
pub(crate) struct Look {
    pub(crate) streams: Vec<Vec<String>>,
    pub(crate) reading: Reading,
}

pub(crate) fn look(seen: &Weigher<'_>) -> Look {
    let streams: Vec<Vec<String>> =
        seen.matcher.excerpts.iter().map(crate::excerpt::Excerpt::lines).collect();
    let lines = streams.concat();
    let command = seen.signal.command.as_deref().unwrap_or_default().to_ascii_lowercase();
    let status = |code| seen.classifier.status_reason(code, seen.signal.surface);
    Look { reading: grammar::read(&lines, &command, &status), streams }
}

pub(crate) fn vector(seen: &Weigher<'_>, ruled: &Ruled<'_>, look: &Look) -> Vector {
    let case = Case {
        command: seen.signal.command.as_deref().unwrap_or_default(),
        exit: seen.signal.exit,
        signal: seen.signal.signal,
        streams: &look.streams,
        rules: &ruled.matched,
        reason: ruled.reason,
        kind: ruled.rule.map_or("", kind_of),
        reading: &look.reading,
    };
    case.vector()
}

pub(crate) fn decide(seen: &Weigher<'_>, ruled: &Ruled<'_>) -> Decided {
    let table = seen.classifier.table();
    let is_known = seen.programs.names.iter().any(|name| is_known_tool(seen, table, name));
    // Where nobody says which tool it was, a tool's own summary does.
    let is_unnamed = seen.programs.names.is_empty();
    let tells_its_tool = is_unnamed && ruled.rule.is_some_and(|rule| rule.tool.is_some());
    let own = share(table, ruled, is_known).max(if tells_its_tool { share(table, ruled, true) } else { 0 });
    let by_rule = |percent: u8, reading| Decided {
        reason: ruled.reason,
        confidence: Confidence::of_percent(percent),
        by: By::Rule,
        evidence: Vec::new(),
        reading,
    };
    let ended_hard = seen.signal.timed_out || seen.signal.signal.is_some();
    let is_silent = seen.matcher.excerpts.iter().all(crate::excerpt::Excerpt::is_empty);
    let is_log = seen.matcher.lines.iter().sum::<u64>() > LOG_LINES;
    // Rules are written for known tools, and were measured on unknown ones.
    let is_written = (is_known || (is_unnamed && own >= UNNAMED_PERCENT))
        && ruled.rule.is_some_and(|rule| rule.weight.0 >= PHRASE_WEIGHT);
    let is_answer = seen.signal.surface == Surface::Response;
    // What would be tried again is asked about, whoever is sure of it.
    let is_sure = own >= SURE_PERCENT && (is_known || !ruled.reason.retryable());
    let believed = own > 0 && (is_sure || is_written || is_log || is_answer);
    // A rule may say that nothing is known: of a difference that was asked for, for example.
    let is_denied =
        ruled.reason == Reason::Unknown && ruled.rule.is_some_and(|rule| rule.weight.0 >= PHRASE_WEIGHT);
    if believed || is_denied || ended_hard || is_silent {
        return by_rule(own, None);
    }
    let look = look(seen);
    // What is missing from an answer is for its status to say.
    // Phrases are of commands; a person who reports something says them of anything.
    let is_command = is_of_a_command(seen.signal);
    // What somebody wrote prints anything; how its language ends it says what happened.
    let runs_code = seen.programs.names.iter().any(|name| INTERPRETERS.contains(&name.as_str()));
    let is_told = |finding: &Finding| {
        let is_of_the_world =
            finding.reason.is_some_and(|reason| WORLD.contains(&learned::canonical(reason)));
        !(is_answer && finding.kind.starts_with("grammar.missing"))
            && (!finding.kind.starts_with(grammar::PHRASE) || is_command && (is_of_the_world || !runs_code))
    };
    let finding = best_finding(table, &look.reading, &is_told);
    let guess = table
        .filter(|_| seen.classifier.learns && is_command)
        .and_then(|table| table.guess(&vector(seen, ruled, &look)));
    let grammars = finding.as_ref().map_or(0, |(_, percent)| *percent);
    // A rule is left only for something that is better; a guess says at least something.
    let least = if is_known { GUESS_KNOWN_PERCENT_MIN } else { GUESS_PERCENT_MIN };
    let is_crash = runs_code && ruled.reason == Reason::Crash;
    let allowed = if is_known || runs_code { 0 } else { CONTRADICTED_PERCENT };
    let needed = if own == 0 { least } else { (own + 1).saturating_sub(allowed) };
    if let (Some(guess), Some(table)) = (guess, table) {
        if guess.reason == learned::canonical(ruled.reason) && ruled.rule.is_some() {
            // Two that agree are surer than one, but two are not enough for trying again.
            let percent = if ruled.reason.retryable() { own } else { own.max(guess.percent) };
            return by_rule(percent, Some(look.reading));
        }
        let is_thrown = is_crash && !WORLD.contains(&guess.reason);
        if guess.percent >= needed && !is_thrown {
            let says_so = |finding: &Finding| {
                is_told(finding) && finding.reason.map(learned::canonical) == Some(guess.reason)
            };
            // What the grammar read says why, which a guess cannot.
            if let Some((finding, percent)) = best_finding(Some(table), &look.reading, &says_so) {
                // Phrases are in many texts: one is tried again only if the model is sure, too.
                let is_doubted =
                    finding.kind.starts_with(grammar::PHRASE) && guess.percent < PHRASE_RETRY_PERCENT_MIN;
                let percent = match (guess.reason.retryable(), is_doubted) {
                    (true, true) => percent.min(DOUBTED_PERCENT_MAX),
                    (true, false) => percent,
                    (false, _) => percent.max(guess.percent),
                };
                return by_grammar(seen, ruled.reason, finding, percent, look.reading);
            }
            let nearest = table.nearest(guess.reason, &Sketch::of(&look.streams));
            // A failure that is like none that somebody labelled is unknown.
            let is_known_text = table.known_count(&learned::text_features(&look.streams)) >= KNOWN_WORDS_MIN;
            if !runs_code && (!nearest.is_empty() || is_known_text) {
                return Decided {
                    reason: guess.reason,
                    confidence: Confidence::of_percent(guess.percent).at_most_medium(),
                    by: By::Learned,
                    evidence: cited(guess.reason, nearest),
                    reading: Some(look.reading),
                };
            }
        }
    }
    // A rule knows more than the grammar: whose limit it is, what is missing.
    let agrees = |(finding, _): &(Finding, u8)| finding.reason == Some(ruled.reason);
    if ruled.rule.is_some() && finding.as_ref().is_some_and(agrees) {
        return by_rule(own.max(grammars), Some(look.reading));
    }
    // A rule that would try again is not believed against a guess that would not.
    let is_doubted = ruled.reason.retryable()
        && guess.is_some_and(|guess| !guess.reason.retryable() && guess.percent >= DOUBT_PERCENT);
    let own = if is_doubted { own.min(DOUBTED_PERCENT_MAX) } else { own };
    let is_phrase_alone = |finding: &Finding| {
        finding.kind.starts_with(grammar::PHRASE)
            && finding.reason.is_some_and(Reason::retryable)
            && table.is_some()
    };
    match finding {
        Some((finding, percent))
            if percent >= needed && !is_crash && !is_doubted && !is_phrase_alone(&finding) =>
        {
            by_grammar(seen, ruled.reason, finding, percent, look.reading)
        }
        _ => by_rule(own, Some(look.reading)),
    }
}

/// The answer of a finding of the grammar; `otherwise` is the reason where it speaks for none.
fn by_grammar(
    seen: &Weigher<'_>,
    otherwise: Reason,
    finding: Finding,
    percent: u8,
    reading: Reading,
) -> Decided {
    let evidence = Evidence {
        rule: finding.kind.to_owned(),
        line: None,
        text: SafeText::new(seen.classifier.redactor.redact(&finding.text).as_ref()),
        stream: None,
    };
    Decided {
        reason: finding.reason.unwrap_or(otherwise),
        confidence: Confidence::of_percent(percent).at_most_medium(),
        evidence: vec![evidence],
        by: By::Grammar(finding),
        reading: Some(reading),
    }
}

/// Whether a command is known to have failed. The back-off has learned from the output of commands;
/// of what a person, an agent or a task reports in words it knows nothing.
fn is_of_a_command(signal: &Signal) -> bool {
    signal.surface == Surface::Command && (signal.command.is_some() || signal.exit.is_some())
}

/// Whether rules were written for a tool: they read its output, or it is in the corpora they were
/// written from.
fn is_known_tool(seen: &Weigher<'_>, table: Option<&Table>, name: &str) -> bool {
    if WRAPPERS.contains(&name) || INTERPRETERS.contains(&name) {
        return false;
    }
    let named = |rule: &Rule| rule.tool.as_deref() == Some(name);
    table.is_some_and(|table| table.share(&format!("{TOOL}{}", name.to_lowercase())).is_some())
        || seen.classifier.rules.iter().any(named)
}

/// The finding with the highest share of right answers, of those that are wanted; the last one of
/// several.
fn best_finding(
    table: Option<&Table>,
    reading: &Reading,
    is_wanted: &dyn Fn(&Finding) -> bool,
) -> Option<(Finding, u8)> {
    let wanted = reading.findings.iter().filter(|finding| finding.reason.is_some() && is_wanted(finding));
    let shares = wanted.map(|finding| {
        let share = table.and_then(|table| table.share(finding.kind)).unwrap_or(GUESS_PERCENT_MIN);
        (finding, share)
    });
    shares.max_by_key(|(_, share)| *share).map(|(finding, share)| (finding.clone(), share))
}

fn cited(reason: Reason, nearest: Vec<learned::LabelledExample>) -> Vec<Evidence> {
    let piece = |text: String| Evidence {
        rule: LEARNED.to_owned(),
        line: None,
        text: SafeText::new(text),
        stream: None,
    };
    if nearest.is_empty() {
        return vec![piece(format!("its words are those of {reason}"))];
    }
    let like = |example: learned::LabelledExample| {
        let text = &example.text[..example.text.floor_char_boundary(EXAMPLE_BYTES_MAX)];
        piece(format!("like {} ({reason}): {text}", example.id))
    };
    nearest.into_iter().map(like).collect()
}
