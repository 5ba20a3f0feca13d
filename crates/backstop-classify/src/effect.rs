//! Which commands change something outside the project, so that they must not be repeated without
//! being asked for: a command line and the table of effect rules go in, a [`Repeatable`] comes out.
//!
//! What no rule names is repeatable. It must not run anything, and it must not decide about
//! retries: it only says what a command does, and what its failure says about how far it got.

mod address;
mod code;
mod line;
mod names;

use crate::builtin;
use crate::effect_rule::{Changes, EffectRule};
use crate::examples::ExampleFailure;
use crate::pack::build_regex;
use crate::program::{Call, Calls, all_calls};
use address::{is_at, is_url};
use backstop_core::{Fault, Reason, SafeText, shell};
use line::Line;
use std::borrow::Cow;

/// Programs that send nothing: beside one of these, the only request of a line is still its only
/// one.
const LOCAL_PROGRAMS: &[&str] = &[
    "[", "awk", "base64", "cat", "cd", "cut", "date", "echo", "exit", "export", "false", "fi", "grep",
    "head", "jq", "mkdir", "printf", "pwd", "sed", "set", "sleep", "sort", "source", "tail", "tee", "test",
    "touch", "tr", "true", "umask", "uniq", "unset", "wc", "yq",
];
/// Programs that repeat what follows them. Loops of a shell are known by their `done`, which is no
/// local program.
const REPEATERS: &[&str] = &["xargs", "watch", "find", "parallel"];

/// Words of a failure before anything was sent, in lower case.
const UNSENT: &[&str] = &[
    "connection refused",
    "econnrefused",
    "could not resolve",
    "couldn't resolve",
    "couldn't connect",
    "failed to connect",
    "could not connect",
    "unable to connect",
    "no such host",
    "enotfound",
    "eai_again",
    "name or service not known",
    "name resolution",
    "network is unreachable",
    "no route to host",
    "enetunreach",
    "ehostunreach",
    "certificate",
    "handshake",
    "wrong version number",
];
/// Words of a failure after something may have been sent: they weigh more than those above.
const MAYBE_SENT: &[&str] = &[
    "connection reset",
    "econnreset",
    "broken pipe",
    "epipe",
    "empty reply",
    "hung up",
    "unexpected eof",
    "timed out",
    "timeout",
    "prematurely",
    "socket hang up",
];
/// Words that make a statement more than a read, wherever they stand in it.
const WRITING_WORDS: &[&str] = &[
    "insert",
    "update",
    "delete",
    "merge",
    "drop",
    "truncate",
    "create",
    "alter",
    "grant",
    "revoke",
    "into",
    "nextval",
    "setval",
    "pg_terminate_backend",
    "pg_cancel_backend",
    "dblink_exec",
];
/// Options that make every program say what it would do, and do nothing.
const HARMLESS_OPTIONS: &[&str] = &["--help", "-help", "--dry-run", "--dryrun"];
/// How an entry of `unless` begins that is about the command after `--`.
const AFTER_DASHES: &str = "-- ";
/// The rule of a command line that was not looked at in full.
const UNREAD_RULE: &str = "command.unread";
/// The rule by which `flock` did not get its lock: what it would have run was not started.
const LOCK_HELD_RULE: &str = "usage.flock_silent";

/// What a command does, by the rule that knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effect {
    /// The rule, such as `curl.send`.
    pub rule: String,
    /// The program.
    pub program: String,
    /// What it does, as the end of the sentence "it …".
    pub does: String,
    /// How many changes it makes.
    pub changes: Changes,
    unsent_exit: Vec<i64>,
    /// Whether the exit code of the line is that of this program.
    has_own_exit: bool,
    /// Whether `flock` starts it only if it gets the lock.
    is_locked: bool,
}

/// Whether a command may be repeated by itself, and what says so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Repeatable {
    /// No rule names it: it may.
    Unlisted,
    /// A rule says that it may.
    Listed(Effect),
    /// It changes something, and a pattern of the user allows it.
    Allowed {
        /// What it does.
        effect: Effect,
        /// The pattern.
        pattern: String,
    },
    /// It changes something: only when somebody says so.
    No(Effect),
}

/// What a failure says about a command that changes something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NothingDone {
    /// Nothing was sent.
    NeverSent,
    /// It was sent, and the server refused to carry it out: too many requests, or not now.
    NotCarriedOut,
}

/// The table of effect rules.
#[derive(Debug, Clone)]
pub struct Effects {
    rules: Cow<'static, [EffectRule]>,
}

impl Effects {
    /// The built-in rules.
    pub fn builtin() -> Self {
        Self { rules: Cow::Borrowed(builtin::EFFECTS) }
    }

    /// The built-in rules after those of users' packs. A user's rule replaces a built-in one with
    /// the same id.
    pub fn with_packs(packs: impl IntoIterator<Item = EffectRule>) -> Self {
        let mut rules: Vec<EffectRule> = packs.into_iter().collect();
        let known = |rule: &&EffectRule| !rules.iter().any(|own| own.id == rule.id);
        let builtin: Vec<EffectRule> = builtin::EFFECTS.iter().filter(known).cloned().collect();
        rules.extend(builtin);
        Self { rules: Cow::Owned(rules) }
    }

    /// All rules.
    pub fn rules(&self) -> &[EffectRule] {
        &self.rules
    }

    /// Whether a command line may be repeated by itself. `allowed` are patterns of commands that
    /// may be, whatever they do: `./deploy.sh *`.
    pub fn judge(&self, command: &str, allowed: &[String]) -> Repeatable {
        let Calls { calls, is_whole } = all_calls(command);
        let found: Vec<(&Call, &EffectRule)> =
            calls.iter().filter_map(|call| Some((call, self.rule_of(call)?))).collect();
        let Some((call, rule)) = found.iter().find(|(_, rule)| !rule.repeatable) else {
            if !is_whole {
                return Repeatable::No(unread(&calls));
            }
            let listed = found.first().map(|(call, rule)| effect(call, rule, Changes::Many));
            return listed.map_or(Repeatable::Unlisted, Repeatable::Listed);
        };
        let changes = if is_alone(&calls, call) { rule.changes } else { Changes::Many };
        let mut effect = effect(call, rule, changes);
        effect.is_locked = calls.iter().any(gives_up_without_lock);
        // `curl … | jq` ends with the exit code of `jq`.
        let after = calls.iter().rev().take_while(|other| !std::ptr::eq(*other, *call));
        effect.has_own_exit = after.into_iter().all(|other| other.is_wrapper);
        let mut harmful = found.iter().filter(|(_, rule)| !rule.repeatable);
        let pattern = |call: &Call| allowed.iter().find(|pattern| allows(pattern, call));
        let first = pattern(call).cloned();
        match first.filter(|_| is_whole && harmful.all(|(call, _)| pattern(call).is_some())) {
            Some(pattern) => Repeatable::Allowed { effect, pattern },
            None => Repeatable::No(effect),
        }
    }

    /// The first rule that matches a call.
    fn rule_of(&self, call: &Call) -> Option<&EffectRule> {
        // A wrapper is what it runs.
        let mut rules = self.rules.iter().filter(|_| !call.is_wrapper);
        rules.find(|rule| matches(rule, call)).filter(|rule| rule.repeatable || !only_shows(rule, call))
    }

    /// Runs the examples of these rules. Each example of `match` must be decided by its rule, no
    /// example of `miss` may be.
    pub fn check_examples(&self, wanted: impl Fn(&EffectRule) -> bool) -> Vec<ExampleFailure> {
        let mut failures = Vec::new();
        for rule in self.rules.iter().filter(|rule| wanted(rule)) {
            let examples =
                rule.matches.iter().map(|e| (e, true)).chain(rule.misses.iter().map(|e| (e, false)));
            for (example, should_match) in examples {
                let calls = all_calls(example).calls;
                let matched: Vec<&EffectRule> = calls.iter().filter_map(|call| self.rule_of(call)).collect();
                if matched.iter().any(|found| found.id == rule.id) != should_match {
                    failures.push(ExampleFailure {
                        rule: rule.id.to_string(),
                        pack: rule.source.to_string(),
                        pack_line: rule.pack_line,
                        should_match,
                        text: example.to_string(),
                        matched: matched.iter().map(|found| found.id.to_string()).collect(),
                    });
                }
            }
        }
        failures
    }
}

/// Whether what follows a program's name at the beginning of a line makes it a message of the
/// program, which programs write to standard error: `git: x`, `npm notice x`, `npm error x`.
fn is_message(rest: &str) -> bool {
    const LEVELS: [&str; 6] = ["notice", "warn", "warning", "error", "ERR!", "info"];
    let level = rest.strip_prefix(' ').and_then(|rest| rest.split(' ').next());
    rest.starts_with(':') || level.is_some_and(|level| LEVELS.contains(&level))
}

/// Whether a line begins as programs begin their errors: `error: x`, `Fatal: x`, `Caused by:`,
/// `E1118 10:00:00 x` of programs written in Go.
fn begins_as_error(line: &str) -> bool {
    let word = line.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
    let is_go =
        word.len() == 5 && word.starts_with('E') && word[1..].bytes().all(|byte| byte.is_ascii_digit());
    is_go
        || ["error", "err", "fatal", "failed", "http", "caused"]
            .iter()
            .any(|known| word.eq_ignore_ascii_case(known))
}

impl Effect {
    /// Whether a text that both streams wrote has nothing but errors: lines that the fault quotes,
    /// lines that begin with the program's name or with a word for an error, and what is indented
    /// below them. Where the streams are apart, all of that is on standard error.
    pub fn is_errors_only(&self, text: &[u8], fault: &Fault) -> bool {
        let quoted = || {
            let texts = fault.evidence.iter().map(|e| e.text.raw());
            texts.chain(fault.cause.iter().map(SafeText::raw)).flat_map(str::lines)
        };
        let mut below_error = false;
        String::from_utf8_lossy(text).lines().filter(|line| !line.trim().is_empty()).all(|line| {
            let is_indented = line.starts_with([' ', '\t']);
            let line = line.trim();
            let of_program = line.strip_prefix(self.program.as_str()).is_some_and(is_message);
            below_error = (below_error && is_indented)
                || of_program
                || begins_as_error(line)
                || quoted().any(|quoted| quoted.trim() == line);
            below_error
        })
    }

    /// What a failure says: that nothing was changed, or nothing. `has_output` says whether the
    /// command wrote anything to standard output.
    pub fn nothing_done(&self, fault: &Fault, exit: Option<i64>, has_output: bool) -> Option<NothingDone> {
        let lock_held = fault.evidence.first().is_some_and(|found| found.rule == LOCK_HELD_RULE);
        if self.is_locked && lock_held && !has_output {
            return Some(NothingDone::NeverSent);
        }
        // A program that prints the answer of the server has printed nothing of its own.
        let prints_answer = PRINT_STATUS.contains(&self.program.as_str());
        match self.changes {
            Changes::One if !has_output || prints_answer => {}
            Changes::Reported | Changes::Refused if !has_output => {}
            Changes::One | Changes::Refused | Changes::Reported | Changes::Many => return None,
        }
        if fault.reason == Reason::RateLimited {
            // Of a program that prints the status, only the status counts: a body may speak of 429
            // in an answer to something that was carried out.
            let says_so = fault.facts.status == Some(429) || !prints_answer;
            return says_so.then_some(NothingDone::NotCarriedOut);
        }
        let texts =
            || fault.evidence.iter().map(|e| e.text.raw()).chain(fault.cause.iter().map(SafeText::raw));
        let mentions = |words: &[&str], text: &str| {
            let text = text.to_ascii_lowercase();
            words.iter().any(|word| text.contains(word))
        };
        // A wait of 0 seconds, or until a time that has passed, is no wait that is left.
        let names_a_wait = fault.facts.retry_after_seconds.is_some() || fault.facts.resets_at.is_some();
        if names_a_wait && texts().any(|text| has_number(text, "503")) {
            return Some(NothingDone::NotCarriedOut);
        }
        if self.changes == Changes::Refused {
            return None;
        }
        // Where exit codes tell, what an answer says about another connection does not.
        if let Some(exit) = exit.filter(|_| self.has_own_exit && !self.unsent_exit.is_empty()) {
            return self.unsent_exit.contains(&exit).then_some(NothingDone::NeverSent);
        }
        if exit.is_some() && !self.unsent_exit.is_empty() {
            // Its exit code would say so. What it printed may be the text of an answer.
            return None;
        }
        let network =
            matches!(fault.reason, Reason::NetworkTransient | Reason::NetworkPermanent | Reason::ServiceDown);
        let is_answered = has_output || fault.facts.status.is_some();
        if !network || is_answered || texts().any(|text| mentions(MAYBE_SENT, text)) {
            return None;
        }
        let strongest = fault.evidence.first().map(|e| e.text.raw()).into_iter();
        let decisive = strongest.chain(fault.cause.iter().map(SafeText::raw));
        decisive.into_iter().any(|text| mentions(UNSENT, text)).then_some(NothingDone::NeverSent)
    }
}

/// Programs that print the status of a refused request.
const PRINT_STATUS: &[&str] = &["curl", "wget", "http", "https", "xh"];

/// Whether a call follows redirections: what is refused then may be the second request, after the
/// first was carried out.
fn follows(call: &Call) -> bool {
    let is_flag = |word: &str| {
        word.starts_with("--location") || word == "--follow" || {
            word.starts_with('-') && !word.starts_with("--") && word.contains('L')
        }
    };
    PRINT_STATUS.contains(&call.name.as_str()) && call.words.iter().any(|word| is_flag(word))
}

fn effect(call: &Call, rule: &EffectRule, changes: Changes) -> Effect {
    let changes = if follows(call) { Changes::Many } else { changes };
    Effect {
        rule: rule.id.to_string(),
        program: call.name.clone(),
        does: rule.does.to_string(),
        changes,
        unsent_exit: rule.unsent_exit.to_vec(),
        has_own_exit: true,
        is_locked: false,
    }
}

/// What is known of a command line that is too long, or too deeply nested, to be looked at.
fn unread(calls: &[Call]) -> Effect {
    Effect {
        rule: UNREAD_RULE.to_owned(),
        program: calls.first().map(|call| call.name.clone()).unwrap_or_default(),
        does: "is too long, or too deeply nested, to be looked at as a whole".to_owned(),
        changes: Changes::Many,
        unsent_exit: Vec::new(),
        has_own_exit: true,
        is_locked: false,
    }
}

/// Whether a call is a `flock` that ends without running anything if somebody else has the lock.
fn gives_up_without_lock(call: &Call) -> bool {
    let options = ["-n", "--nb", "--nonblock", "-w", "--wait", "--timeout"];
    call.name == "flock" && call.words.iter().any(|word| options.contains(&word.as_str()))
}

/// Whether a call is the only one of its line that can send anything, and sends one thing.
fn is_alone(calls: &[Call], call: &Call) -> bool {
    let local = |other: &Call| LOCAL_PROGRAMS.contains(&other.name.as_str());
    let repeats = calls.iter().any(|other| REPEATERS.contains(&other.name.as_str()));
    let one_address = call.words.iter().filter(|word| is_url(word)).count() <= 1;
    let others = calls.iter().filter(|other| !std::ptr::eq(*other, call));
    !repeats && one_address && others.filter(|other| !other.is_wrapper).all(local)
}

/// Whether a pattern of the user names this call: as it was typed, or by its base name. A pattern
/// that ends in ` *` also names the command without arguments.
fn allows(pattern: &str, call: &Call) -> bool {
    let pattern = pattern.trim();
    let line =
        |program: &str| shell::line(std::iter::once(program).chain(call.words.iter().map(String::as_str)));
    [line(&call.typed), line(&call.name)]
        .iter()
        .any(|line| glob(pattern, line) || pattern.strip_suffix(" *").is_some_and(|bare| glob(bare, line)))
}

/// Whether a call is asked for its help, or for what it would do: `--help`, `--dry-run=client`.
fn only_shows(rule: &EffectRule, call: &Call) -> bool {
    let words: Vec<&str> = call.words.iter().map(String::as_str).collect();
    if !words.iter().any(|word| HARMLESS_OPTIONS.iter().any(|option| word.starts_with(option))) {
        return false;
    }
    let line = Line::new(&words, rule);
    HARMLESS_OPTIONS.iter().any(|option| line.has_flag(option))
}

/// Whether a rule is about a call. What says that a command changes something counts wherever it
/// may stand; what says that it does not counts only where it stands for certain.
fn matches(rule: &EffectRule, call: &Call) -> bool {
    let any = |list: &[Cow<'static, str>], test: &dyn Fn(&str) -> bool| list.iter().any(|entry| test(entry));
    let is_program = |name: &str| match name {
        names::PATTERN => names::is_script_that_changes(&call.typed),
        name => glob(name, &call.name),
    };
    if !any(&rule.program, &is_program) {
        return false;
    }
    let words: Vec<&str> = call.words.iter().map(String::as_str).collect();
    let line = Line::new(&words, rule);
    let has_option = |spec: &str| has_option(spec, &words, &rule.short_values);
    let has_argument = |pattern: &str| line.operands().any(|(word, _)| is_argument(pattern, word));
    let asks = !rule.option.is_empty() || !rule.argument.is_empty();
    if asks && !any(&rule.option, &has_option) && !any(&rule.argument, &has_argument) {
        return false;
    }
    if !rule.also.is_empty() && !any(&rule.also, &has_option) {
        return false;
    }
    if !rule.statement.is_empty() && !any(&rule.statement, &|option| writes(rule, option, &line, &words)) {
        return false;
    }
    if !rule.url.is_empty() {
        let mut addresses = words.iter().filter(|word| is_url(word)).peekable();
        if addresses.peek().is_none() || !addresses.all(|word| any(&rule.url, &|url| is_at(url, word))) {
            return false;
        }
    }
    let is_excused = |entry: &str| match entry.strip_prefix(AFTER_DASHES) {
        Some(commands) => line.command().is_some_and(|word| commands.split('|').any(|one| glob(one, word))),
        None if rule.repeatable => has_option(entry),
        None => line.has_flag(entry),
    };
    if any(&rule.unless, &|entry| entry.starts_with('-') && is_excused(entry)) {
        return false;
    }
    let verbs: Vec<&str> = rule.unless.iter().map(AsRef::as_ref).filter(|e| !e.starts_with('-')).collect();
    let readings = line.readings();
    match (rule.repeatable, readings) {
        // Too many ways to read it: nothing speaks for it.
        (true, None) => false,
        (false, None) => rule.subcommand.is_empty() || rule.subcommand.iter().any(|p| may_begin(p, &line)),
        (true, Some(readings)) => {
            readings.iter().all(|reading| is_subcommand(&rule.subcommand, reading))
                && !verbs.iter().any(|verb| has_argument(verb))
        }
        (false, Some(readings)) => {
            // Of words that may stand anywhere, the first decides: `instances delete list` deletes.
            let (words, phrases): (Vec<&str>, Vec<&str>) =
                verbs.iter().partition(|verb| !rule.argument.is_empty() && !verb.contains(' '));
            let acts = |reading: &Vec<&str>| {
                is_subcommand(&rule.subcommand, reading) && !phrases.iter().any(|verb| begins(verb, reading))
            };
            readings.iter().any(acts) && acts_first(rule, &words, &line)
        }
    }
}

/// Whether the first operand that decides is one that changes something, in some way to read them.
fn acts_first(rule: &EffectRule, verbs: &[&str], line: &Line<'_>) -> bool {
    for (word, is_doubtful) in line.operands() {
        if !is_doubtful && verbs.iter().any(|verb| is_argument(verb, word)) {
            return false;
        }
        if rule.argument.iter().any(|pattern| is_argument(pattern, word)) {
            return true;
        }
    }
    // An option changes something.
    true
}

fn is_subcommand(patterns: &[Cow<'static, str>], reading: &[&str]) -> bool {
    patterns.is_empty() || patterns.iter().any(|pattern| begins(pattern, reading))
}

/// Whether the first operands are these: words, each with alternatives.
fn begins(pattern: &str, operands: &[&str]) -> bool {
    let mut operands = operands.iter();
    pattern
        .split(' ')
        .all(|wanted| operands.next().is_some_and(|word| wanted.split('|').any(|one| is_named(one, word))))
}

/// Whether the words of a pattern are there in this order, wherever.
fn may_begin(pattern: &str, line: &Line<'_>) -> bool {
    let mut operands = line.operands();
    pattern
        .split(' ')
        .all(|wanted| operands.any(|(word, _)| wanted.split('|').any(|one| is_named(one, word))))
}

/// Whether a word is what a pattern names: a glob, a name that says that it changes something, or
/// code that does.
fn is_named(pattern: &str, word: &str) -> bool {
    match pattern {
        names::PATTERN => names::says_change(word),
        code::PATTERN => code::sends(word),
        pattern => glob(pattern, word),
    }
}

fn is_argument(pattern: &str, word: &str) -> bool {
    if pattern == names::PATTERN {
        // `RELEASE=deploy` is no target.
        return !word.contains('=') && !is_url(word) && names::says_change(word);
    }
    match pattern.strip_prefix('~') {
        Some(regex) => build_regex(regex).is_ok_and(|regex| !is_url(word) && regex.is_match(word.as_bytes())),
        None => glob(pattern, word),
    }
}

/// Whether an option is there, with a value that it asks for: `-X`, `--data*`, `-X=POST|PUT`,
/// `--request!=GET|HEAD`.
fn has_option(spec: &str, words: &[&str], short_values: &str) -> bool {
    let (name, values) = match spec.split_once('=') {
        Some((name, values)) => {
            (name.strip_suffix('!').unwrap_or(name), Some((values, !name.ends_with('!'))))
        }
        None => (spec, None),
    };
    option_values(name, words, short_values).iter().any(|value| match values {
        None => true,
        Some((values, wanted)) => values.split('|').any(|one| is_named(one, value)) == wanted,
    })
}

/// The values of an option, wherever it is given: `-XPOST`, `-X POST`, `-sXPOST`, `--request=POST`.
/// An option without a value has an empty one.
fn option_values<'w>(name: &str, words: &[&'w str], short_values: &str) -> Vec<&'w str> {
    let short = name.strip_prefix('-').filter(|rest| rest.chars().count() == 1 && *rest != "-");
    let mut values = Vec::new();
    let mut at = 0;
    while let Some(word) = words.get(at) {
        at += 1;
        if *word == "--" {
            break;
        }
        let next = || words.get(at).copied().unwrap_or_default();
        let Some(letters) = word.strip_prefix('-').filter(|rest| !rest.is_empty()) else { continue };
        if let (false, Some(short)) = (word.starts_with("--"), short) {
            for (index, letter) in letters.char_indices() {
                let rest = &letters[index + letter.len_utf8()..];
                let takes_value = short_values.contains(letter);
                if short.starts_with(letter) {
                    values.push(if rest.is_empty() { next() } else { rest.trim_start_matches('=') });
                }
                if takes_value {
                    at += usize::from(rest.is_empty());
                    break;
                }
                // Not a group of letters: `-chdir=x`.
                if !letter.is_ascii_alphanumeric() {
                    break;
                }
            }
        } else if short.is_none() {
            let (given, value) = word.split_once('=').map_or((*word, None), |(given, v)| (given, Some(v)));
            if glob_exact(name, given) || is_short_for(given, name) {
                values.push(value.unwrap_or_else(next));
            }
        }
    }
    values
}

/// Whether an option is a longer one cut short, as many programs allow: `--dat` for `--data`.
fn is_short_for(given: &str, name: &str) -> bool {
    let whole = name.split('*').next().unwrap_or(name);
    given.len() >= 5 && given.starts_with("--") && given.len() < whole.len() && whole.starts_with(given)
}

/// Whether a statement of an option's value, or of an argument, does more than read.
fn writes(rule: &EffectRule, option: &str, line: &Line<'_>, words: &[&str]) -> bool {
    let values: Vec<&str> = if option == "*" {
        let dotted = |w: &str| w.starts_with('.') && w[1..].starts_with(|c: char| c.is_ascii_alphabetic());
        let operands = line.operands().map(|(word, _)| word);
        operands.filter(|w| w.contains([' ', ';', '\n']) || dotted(w)).collect()
    } else {
        option_values(option, words, &rule.short_values)
    };
    let values: Vec<String> = values.into_iter().map(without_strings).collect();
    let statements =
        values.iter().flat_map(|value| value.split(';')).map(str::trim).filter(|s| !s.is_empty());
    statements.into_iter().any(|statement| {
        let mut words = statement.split(|c: char| c.is_whitespace() || c == '(').filter(|w| !w.is_empty());
        let first = words.next().unwrap_or_default();
        !rule.reads.iter().any(|read| glob(read, first))
            || words.any(|word| WRITING_WORDS.iter().any(|writing| writing.eq_ignore_ascii_case(word)))
    })
}

/// A statement without the text between its quotes: what a string says is not carried out.
fn without_strings(statement: &str) -> String {
    let mut quote = None;
    let mut out = String::with_capacity(statement.len());
    for c in statement.chars() {
        match quote {
            Some(q) if c == q => quote = None,
            Some(_) => continue,
            None if matches!(c, '\'' | '"' | '`') => quote = Some(c),
            None => {}
        }
        out.push(c);
    }
    // A quote that is not closed hides nothing.
    if quote.is_some() { statement.to_owned() } else { out }
}

/// Whether a text is a number among others: `503` in `HTTP/1.1 503 x`, not in `15031`.
fn has_number(text: &str, number: &str) -> bool {
    text.split(|c: char| !c.is_ascii_digit()).any(|part| part == number)
}

/// Whether a pattern with `*` is the whole of a text; the case of letters does not matter.
fn glob(pattern: &str, text: &str) -> bool {
    glob_bytes(pattern.as_bytes(), text.as_bytes(), &|a, b| a.eq_ignore_ascii_case(&b))
}

/// The same, where the case of letters matters.
fn glob_exact(pattern: &str, text: &str) -> bool {
    glob_bytes(pattern.as_bytes(), text.as_bytes(), &|a, b| a == b)
}

/// Matches in linear space and at most quadratic time, whatever the pattern.
fn glob_bytes(pattern: &[u8], text: &[u8], same: &dyn Fn(u8, u8) -> bool) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        if p < pattern.len() && pattern[p] == b'*' {
            star = Some((p, t));
            p += 1;
        } else if p < pattern.len() && same(pattern[p], text[t]) {
            (p, t) = (p + 1, t + 1);
        } else if let Some((at, from)) = star {
            (p, t) = (at + 1, from + 1);
            star = Some((at, from + 1));
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|b| *b == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;
    use backstop_core::Evidence;

    fn rule_of(command: &str) -> Option<String> {
        match Effects::builtin().judge(command, &[]) {
            Repeatable::No(effect) => Some(effect.rule),
            _ => None,
        }
    }

    #[test]
    fn wrappers_and_lines_of_several_commands_are_looked_through() {
        for command in [
            "sudo curl -X POST https://x.example/charge",
            "env A=b timeout 5 curl -d a=b https://x.example/charge",
            "sh -c 'cd x && curl -sXPOST https://x.example/charge | jq .'",
            "bash -lc \"set -e; R=$(curl -sd a=b https://x.example)\"",
            "echo \"$(curl -d a=b https://x.example)\"",
            "ssh -p 22 me@host 'curl -d a=b https://x.example'",
            "docker exec -e A=b db curl -d a=b https://x.example",
            "find . -name '*.json' -exec curl -d @{} https://x.example ';'",
            "ls | xargs -n1 curl -T",
            "eval 'curl -d a=b https://x.example'",
            "if true; then curl -d a=b https://x.example; fi",
            "backstop exec --timeout 5s -- curl -d a=b https://x.example",
        ] {
            assert_eq!(rule_of(command).as_deref(), Some("curl.send"), "{command}");
        }
        for command in
            ["echo curl -X POST", "git commit -m 'curl -X POST /charge'", "grep -r 'curl -d' .", "man curl"]
        {
            assert_eq!(rule_of(command), None, "{command}");
        }
    }

    #[test]
    fn what_was_not_looked_at_is_not_repeatable() {
        let unread = |command: &str| rule_of(command).as_deref() == Some(UNREAD_RULE);
        let nested = |times| (0..times).fold("true".to_owned(), |inner, _| shell::line(["sh", "-c", &inner]));
        assert!(!unread(&nested(4)) && unread(&nested(9)));
        assert!(unread(&format!("{} true", "eval ".repeat(20))));
        assert!(
            !unread(&format!("echo {}", "b".repeat(100 << 10)))
                && unread(&format!("echo {}", "b".repeat(300 << 10)))
        );
        assert!(unread(&"true; ".repeat(10_000)));
        // What stands behind a long text is looked at.
        let long = format!("echo '{}' > a && gh issue create -t x", "b".repeat(100 << 10));
        assert_eq!(rule_of(&long).as_deref(), Some("gh.change"));
    }

    #[test]
    fn what_is_run_all_day_is_repeatable() {
        let commands = "npm ci; npm test; npm run build; npm run dev; npm install; yarn; yarn install; pnpm i; npx tsc --noEmit; \
            npx eslint .; bun test; cargo build --release; cargo test deploy; cargo run --bin release; cargo clippy; make; \
            make -j8 test; make install; go test ./...; go build -o publish .; pytest tests/test_deploy.py; \
            python -m pytest -k publish; python app.py; pip install -r requirements.txt; docker build -t app .; \
            docker compose up -d; docker run --rm img test; git status; git fetch; git pull --rebase; git clone u; \
            git commit -m 'release 1.2'; git tag v1; git stash push; kubectl get pods -w; kubectl logs -f x; kubectl wait x; \
            terraform init; terraform plan -out p; helm repo update; helm lint x; aws s3 ls; aws s3 cp s3://a/b c; \
            aws ec2 describe-instances; aws sso login; gcloud auth list; gcloud container clusters get-credentials x; \
            az account show; az vm list; curl -fsSL https://x.example/install.sh; curl -I https://x.example; wget -q https://x.example/a; \
            gh pr checks 5 --watch; gh run view 5 --log; gh auth status; gh api user; psql -c 'select 1'; redis-cli ping; \
            ssh host uptime; ssh host; ssh host 'cat deploy.sh'; rsync -a a b; apt-get update; brew upgrade; cmake --build .; \
            ctest; mvn -q test; ./gradlew test; bazel test //...; bundle install; rails test; rake spec; mix deps.get; mix release; \
            flutter test; dotnet test; vercel dev; heroku logs; tsc --watch; claude -p 'deploy it'; codex exec 'publish'; \
            uv sync; uv run train.py; uv pip install x; poetry install; poetry run pytest; tox -e py313; just test; task build; \
            systemctl status x; pm2 list; cat deploy.sh; ls release; sleep 1; env; node server.js; php artisan test; \
            composer install; terraform fmt; ansible-lint; nx build app; turbo run build; expo start; supabase start; \
            firebase emulators:start; sst dev; serverless offline; sqlite3 a.db 'select 1'; mysql -e 'show tables'; mongosh --eval 'db.a.find()'; \
            alembic history; prisma generate; knex migrate:list; cdk diff; sam build; pulumi preview; argocd app list; skaffold dev";
        let wrong: Vec<(&str, String)> = commands
            .split(';')
            .map(str::trim)
            .filter_map(|command| Some((command, rule_of(command)?)))
            .collect();
        assert!(wrong.is_empty(), "{wrong:?}");
    }

    #[test]
    fn a_refusal_says_that_nothing_was_done_only_where_one_thing_is() {
        let fault = |reason, text: &str| {
            let mut fault = Fault::new(reason);
            fault.cause = Some(text.into());
            let evidence = Evidence { rule: "x".to_owned(), line: None, text: text.into(), stream: None };
            fault.evidence.push(evidence);
            fault.facts.status = text.rsplit(' ').next().and_then(|last| last.parse().ok());
            fault
        };
        let (net, permanent) = (Reason::NetworkTransient, Reason::NetworkPermanent);
        let refused = "curl: (7) Failed to connect to 127.0.0.1 port 1: Connection refused";
        let (sent, done) = (Some(NothingDone::NeverSent), Some(NothingDone::NotCarriedOut));
        let post = "curl -X POST https://x.example/charge";
        let cases = [
            (post, net, refused, false, sent),
            (post, permanent, "curl: (6) Could not resolve host: x.example", false, sent),
            (post, permanent, "curl: (35) TLS connect error: handshake failure", false, sent),
            (post, net, "curl: (56) Recv failure: Connection reset by peer", false, None),
            (post, net, "curl: (28) Failed to connect: Connection timed out", false, None),
            (post, net, "curl: (22) The requested URL returned error: 500", false, None),
            (post, net, "curl: (22) The requested URL returned error: 503", false, None),
            (post, Reason::RateLimited, "curl: (22) The requested URL returned error: 429", false, done),
            // The body speaks of a limit, the status was another.
            (post, Reason::RateLimited, "{\"error\":{\"code\":429}}", false, None),
            ("curl -sSL -d a=b https://x.example", net, refused, false, None),
            ("curl --location -d a=b https://x.example", net, refused, false, None),
            ("gh issue create -t x", Reason::RateLimited, "HTTP 429: too many requests", false, done),
            // The issue was made, and its number was printed, before what came next failed.
            ("gh issue create -t x", Reason::RateLimited, "HTTP 429: too many requests", true, None),
            ("gh issue create -t x", net, refused, true, None),
            // These repeat requests themselves, or run scripts of the project: only a refusal
            // counts.
            ("npm publish", Reason::RateLimited, "npm error 429 Too Many Requests - PUT x", false, done),
            ("npm publish", Reason::RateLimited, "npm error 429 Too Many Requests - PUT x", true, None),
            ("npm publish", net, "npm error code ECONNREFUSED: connection refused", false, None),
            ("npm publish --workspaces", Reason::RateLimited, "npm error 429", false, None),
            ("npm version patch", net, refused, false, None),
            ("cargo publish -p x", Reason::RateLimited, "status 429 Too Many Requests", false, done),
            ("aws ec2 run-instances", Reason::RateLimited, "RequestLimitExceeded", false, done),
            ("aws s3 rm s3://b --recursive", Reason::RateLimited, "SlowDown", false, None),
            ("aws ec2 run-instances", net, refused, false, None),
            ("git push", net, "fatal: unable to access 'x': Could not resolve host: x", false, sent),
            ("git push", net, "fatal: the remote end hung up unexpectedly", false, None),
            ("git send-email a.patch", net, refused, false, None),
            ("cd x && gh pr create -f", net, refused, false, sent),
            ("gh pr create -f && ./next.sh", net, refused, false, None),
            ("for i in 1 2; do curl -d a=b https://x.example; done", net, refused, false, None),
            ("curl -d a=b https://x.example https://y.example", net, refused, false, None),
            ("terraform apply", net, refused, false, sent),
            ("terraform apply", net, refused, true, None),
            ("terraform apply", Reason::RateLimited, "429", true, None),
            ("./deploy.sh", net, refused, false, None),
            ("./deploy.sh", Reason::RateLimited, "429", false, None),
        ];
        for (command, reason, text, has_output, want) in cases {
            let Repeatable::No(effect) = Effects::builtin().judge(command, &[]) else { panic!("{command}") };
            assert_eq!(
                effect.nothing_done(&fault(reason, text), None, has_output),
                want,
                "{command}: {text}"
            );
        }
        let Repeatable::No(effect) = Effects::builtin().judge(post, &[]) else { panic!() };
        let mut later = fault(net, "HTTP/1.1 503 Service Unavailable");
        later.facts.retry_after_seconds = Some(2.0);
        assert_eq!(effect.nothing_done(&later, Some(22), true), done);
        assert_eq!(effect.nothing_done(&fault(net, "exit 7"), Some(7), false), sent);
        // An answer speaks of a connection that is not the one of the request.
        let body = "order placed; could not notify: connect ECONNREFUSED 10.0.0.5:25";
        assert_eq!(effect.nothing_done(&fault(net, body), Some(22), false), None);
        assert_eq!(effect.nothing_done(&fault(net, body), None, true), None);
        // The exit code is that of `jq`.
        let Repeatable::No(piped) = Effects::builtin().judge(&format!("{post} | jq ."), &[]) else {
            panic!()
        };
        assert_eq!(piped.nothing_done(&fault(net, "exit 5"), Some(5), false), None);
    }

    #[test]
    fn errors_are_told_from_output_where_both_share_a_stream() {
        let of = |command: &str, text: &str| {
            let Repeatable::No(effect) = Effects::builtin().judge(command, &[]) else { panic!("{command}") };
            let mut fault = Fault::new(Reason::NetworkTransient);
            fault.cause = Some("gave up after 3 tries".into());
            effect.is_errors_only(text.as_bytes(), &fault)
        };
        for (command, text) in [
            ("gh pr create -f", "HTTP 503: Service Unavailable (https://api.example.com)\n"),
            ("kubectl apply -f x", "E1118 10:00:00.1 1 memcache.go:265] refused\nerror: refused\n"),
            ("psql -c 'insert into a values (1)'", "psql: error: refused\n\tIs the server running?\n"),
            ("kubectl apply -f x", "gave up after 3 tries\n"),
        ] {
            assert!(of(command, text), "{text}");
        }
        for (command, text) in [
            ("kubectl apply -f x", "configmap/a created\nerror: refused\n"),
            ("psql -c 'insert into a values (1)'", "INSERT 0 1\npsql: error: refused\n"),
            ("gh pr create -f", "https://example.com/pull/7\nHTTP 503: Service Unavailable\n"),
            ("kubectl apply -f x", "  indented, below nothing\nerror: refused\n"),
        ] {
            assert!(!of(command, text), "{text}");
        }
    }

    #[test]
    fn patterns_allow_what_they_name_and_nothing_else() {
        let allowed = |command: &str, patterns: &[&str]| {
            let patterns: Vec<String> = patterns.iter().map(ToString::to_string).collect();
            matches!(Effects::builtin().judge(command, &patterns), Repeatable::Allowed { .. })
        };
        assert!(allowed("./deploy.sh", &["./deploy.sh *"]));
        assert!(allowed("./deploy.sh staging", &["./deploy.sh *"]));
        assert!(allowed("sh -c './deploy.sh a && make deploy'", &["deploy.sh *", "make deploy"]));
        assert!(!allowed("sh -c './deploy.sh a && curl -d x https://x.example'", &["./deploy.sh *"]));
        assert!(!allowed("./deploy.sh production", &["./deploy.sh staging"]));
        assert!(!allowed("curl -X POST https://x.example/b", &["curl -X POST https://x.example/a"]));
    }

    #[test]
    fn hostile_command_lines_are_survived() {
        for command in [
            "",
            "curl -",
            "curl -X",
            "curl --",
            "psql -c ';;'",
            "http '=@:='",
            "aws \u{fffd} create-\0",
            "curl -\u{e9}X",
        ] {
            let _ = Effects::builtin().judge(command, &["*".to_owned(), String::new()]);
        }
        assert!(glob("a*b*c", "aXXbYYc") && !glob("a*b*c", "aXXbYY") && glob("*", ""));
    }
}
