//! Weighs what the rules found and says what it is.
//!
//! Evidence is weighed, not first-come: a hard signal beats a tool's verdict, which beats an error
//! line, which beats a phrase; among equals the later line wins, because the last failure decides.
//! Every number that decides is a rule's.

use crate::Classifier;
use crate::backoff::{self, By, Ruled};
use crate::clean::logged_message;
use crate::credential;
use crate::grammar::Reading;
use crate::learned::{self, Sketch};
use crate::limit_window::Limit;
use crate::limited_model::{model_of_window, named_model};
use crate::matcher::{Match, Matcher};
use crate::mentioned;
use crate::observation::Observation;
use crate::program::Programs;
use crate::provider::{provider_of_command, provider_of_library, provider_of_text};
use crate::reader::only_reads;
use crate::rule::{Rule, RuleOutcome};
use crate::section::Section;
use crate::test_name;
use crate::trailing_advice::is_trailing_advice;
use crate::waits;
use crate::went_well::is_of_no_failure;
use backstop_core::{Class, Evidence, Facts, Fault, Reason, SafeText, Shape, Signal, Surface, duration};
use std::time::Duration;

/// How much being last is worth, in weight.
const RECENCY_WEIGHT: f64 = 4.0;
/// How much a phrase at the very start of a long log loses, in weight.
const DISTANCE_WEIGHT: f64 = 25.0;
/// From how many lines on a log is long.
const LONG_LOG_LINES: u64 = 150;
/// From this weight on, a match is a tool's own verdict.
const VERDICT_WEIGHT: u8 = 70;
/// From this weight on, a match says something by itself.
const PHRASE_WEIGHT: u8 = 40;
/// How much a match loses that lies before the section that failed, and one that lies behind it.
const BEFORE_SECTION_WEIGHT: f64 = 16.0;
const BEHIND_SECTION_WEIGHT: f64 = 8.0;
/// From this weight on, the place of a match does not matter.
const HARD_WEIGHT: u8 = 80;
/// The pack whose rules mark sections.
const SECTIONS: &str = "sections";
/// How many pieces of evidence a fault cites.
const EVIDENCE_MAX: usize = 10;
/// How many rules the learned back-off is told of.
const RULES_SEEN_MAX: usize = 12;
/// How much of a cited text is shown.
const TEXT_BYTES_MAX: usize = 500;
/// How many files are taken from the lines themselves.
const MENTIONED_MAX: usize = 5;
/// How many letters a line has at least that says why.
const WORD_LETTERS_MIN: usize = 3;
/// How much a match loses whose line tells of something that passed or is tried again, in weight.
const WENT_WELL_WEIGHT: f64 = 18.0;
/// How many names a list of facts holds.
const LIST_MAX: usize = 50;

/// The next step where a command failed and printed nothing.
const SILENT_STEP: &str = "it printed nothing: run it with its verbose or debug option, or read its log file";

/// Reasons whose facts are about the code, whichever of them decides.
const FIXABLE: &[Reason] = &[
    Reason::TestFailure,
    Reason::CompileError,
    Reason::TypecheckError,
    Reason::LintError,
    Reason::FormatError,
    Reason::Crash,
];

/// Reasons for which somebody elsewhere is responsible, so that it matters who.
const PROVIDERS_TROUBLE: &[Reason] =
    &[Reason::RateLimited, Reason::QuotaExhausted, Reason::NetworkTransient, Reason::ServiceDown];

/// A rule that applies, with the reason that it stands for.
struct Candidate<'m> {
    rule: usize,
    reason: Reason,
    score: f64,
    /// The match that counts, if the rule matches text.
    found: Option<&'m Match>,
    count: u64,
}

pub(crate) struct Weigher<'m> {
    pub(crate) classifier: &'m Classifier,
    pub(crate) signal: &'m Signal,
    pub(crate) programs: &'m Programs,
    pub(crate) matcher: &'m Matcher,
    /// Whether the command wrote to standard error.
    pub(crate) wrote_stderr: bool,
    /// The section of a long log that failed.
    pub(crate) section: Option<Section>,
}

impl Weigher<'_> {
    /// The fault that all matches add up to.
    pub(crate) fn fault(&self) -> Fault {
        let candidates = self.candidates();
        let winner = self.winner(&candidates);
        let ruled = self.ruled(&candidates, winner);
        let decided = backoff::decide(self, &ruled);
        let winner = winner.filter(|_| matches!(decided.by, By::Rule));
        let reason = decided.reason;
        let mut fault = Fault::new(reason);
        fault.facts = self.facts(reason, winner, &candidates);
        fault.cause = match &decided.by {
            By::Grammar(finding) => {
                fault.facts.status = fault.facts.status.or_else(|| finding.status());
                Some(self.safe(&finding.text))
            }
            _ => self.cause(reason, winner, &candidates),
        };
        fault.evidence = decided.evidence;
        fault.evidence.extend(self.evidence(reason, winner, &candidates));
        fault.evidence.truncate(EVIDENCE_MAX);
        if let Some(reading) = &decided.reading {
            self.diagnostic_facts(&mut fault.facts, reading);
        }
        fault.set_confidence(decided.confidence);
        if matches!(decided.by, By::Learned) {
            // What a text looks like is nothing to act on: a text can be written to look so.
            fault.forbid_retry();
        }
        fault.suggested_action = self.next(reason, winner, &candidates, &fault.facts);
        if fault.suggested_action.raw() == reason.first_step() {
            // No rule suggests anything: what is known of the fault may.
            fault.suggest_first_step();
        }
        let is_silent = self.signal.surface == Surface::Command
            && self.matcher.excerpts.iter().all(crate::excerpt::Excerpt::is_empty);
        if reason == Reason::Unknown && is_silent {
            fault.suggested_action = SafeText::new(SILENT_STEP);
        }
        fault
    }

    /// The candidate that decides.
    fn winner<'c, 'm>(&self, candidates: &'c [Candidate<'m>]) -> Option<&'c Candidate<'m>> {
        let mut winner = candidates.iter().max_by(|a, b| a.score.total_cmp(&b.score));
        for _ in 0..3 {
            let Some(current) = winner else { break };
            match self.refined(candidates, current) {
                Some(finer) if finer.reason != current.reason => winner = Some(finer),
                _ => break,
            }
        }
        winner
    }

    /// What the rules found, for those who are asked where they are not sure.
    fn ruled<'c>(&'c self, candidates: &[Candidate<'_>], winner: Option<&Candidate<'_>>) -> Ruled<'c> {
        let reported = || self.reported().unwrap_or(Reason::Unknown);
        let mut others: Vec<&Candidate<'_>> = candidates.iter().collect();
        others.sort_by(|a, b| b.score.total_cmp(&a.score));
        let rules = winner.into_iter().chain(others).map(|c| (&*self.classifier.rules[c.rule].id, c.reason));
        let mut matched: Vec<(&str, Reason)> = Vec::new();
        for (id, reason) in rules {
            if matched.len() < RULES_SEEN_MAX && matched.iter().all(|(known, _)| *known != id) {
                matched.push((id, learned::canonical(reason)));
            }
        }
        Ruled {
            reason: winner.map_or_else(reported, |w| w.reason),
            rule: winner.map(|w| &self.classifier.rules[w.rule]),
            is_users: winner.is_some_and(|w| self.classifier.users.get(w.rule).is_some_and(|users| *users)),
            matched,
        }
    }

    /// What training sees of the failure.
    pub(crate) fn observation(&self) -> Observation {
        let candidates = self.candidates();
        let winner = self.winner(&candidates);
        let ruled = self.ruled(&candidates, winner);
        let look = backoff::look(self);
        let cause = self.cause(ruled.reason, winner, &candidates);
        Observation {
            reason: ruled.reason,
            rule: ruled.rule.map(|rule| rule.id.to_string()),
            kind: ruled.rule.map(backoff::kind_of),
            matched: candidates
                .iter()
                .map(|c| (self.classifier.rules[c.rule].id.to_string(), c.reason))
                .collect(),
            vector: backoff::vector(self, &ruled, &look),
            sketch: Sketch::of(&look.streams),
            findings: look.reading.findings.iter().filter_map(|f| Some((f.kind, f.reason?))).collect(),
            text: cause.map(|cause| cause.raw().to_owned()).unwrap_or_default(),
        }
    }

    /// Adds the places and rules of diagnostic lines, where no rule captured any.
    fn diagnostic_facts(&self, facts: &mut Facts, reading: &Reading) {
        let (no_files, no_rules) = (facts.files.is_empty(), facts.rules.is_empty());
        for diagnostic in &reading.diagnostics {
            let file = self.safe(&diagnostic.file);
            if no_files && !file.is_empty() && facts.files.len() < LIST_MAX && !facts.files.contains(&file) {
                facts.line = facts.line.or(diagnostic.line);
                facts.files.push(file);
            }
            let rule = diagnostic.rule.as_deref().map(|rule| self.safe(rule));
            if let Some(rule) = rule.filter(|rule| no_rules && !facts.rules.contains(rule))
                && facts.rules.len() < LIST_MAX
            {
                facts.rules.push(rule);
            }
        }
    }

    fn rule(&self, candidate: &Candidate<'_>) -> &Rule {
        &self.classifier.rules[candidate.rule]
    }

    fn reported(&self) -> Option<Reason> {
        self.signal.reported.as_deref().and_then(backstop_core::from_seed_name)
    }

    fn candidates(&self) -> Vec<Candidate<'_>> {
        let mut candidates = Vec::new();
        let only_reads = self.only_reads();
        for (index, rule) in self.classifier.rules.iter().enumerate() {
            let state = &self.matcher.rules[index];
            let applies = if rule.reads_text() { state.count > 0 } else { self.applies(rule) };
            if !applies || rule.pack == SECTIONS || !self.fits(rule) {
                continue;
            }
            let found = self.last_match(index);
            if rule.last_lines > 0 && !found.is_some_and(|f| self.is_near_end(f, rule.last_lines)) {
                continue;
            }
            let reason = match rule.outcome {
                RuleOutcome::Reason(reason) => Some(reason),
                RuleOutcome::Status => found
                    .and_then(|f| f.status)
                    .and_then(|s| self.classifier.status_reason(s, self.signal.surface)),
            };
            let Some(reason) = reason else { continue };
            if only_reads && found.is_some() && PROVIDERS_TROUBLE.contains(&reason) {
                continue;
            }
            let score = f64::from(rule.weight.0) + found.map_or(0.0, |f| self.recency(rule, f));
            candidates.push(Candidate { rule: index, reason, score, found, count: state.count });
        }
        candidates
    }

    /// Whether the command does nothing but read text: what that speaks of has happened to somebody
    /// else.
    fn only_reads(&self) -> bool {
        self.signal.command.as_deref().is_some_and(only_reads)
    }

    /// Whether a rule without text applies: exit code, signal, status and the like fit.
    fn applies(&self, rule: &Rule) -> bool {
        circumstances_fit(rule, self.signal, self.programs)
    }

    /// Whether the conditions on other rules and on the streams are met.
    fn fits(&self, rule: &Rule) -> bool {
        let matched = |id: &str| {
            let prefix = id.strip_suffix('*');
            self.classifier.rules.iter().enumerate().any(|(index, other)| {
                let named = prefix.map_or(other.id == id, |p| other.id.starts_with(p));
                named && (self.matcher.rules[index].count > 0 || (!other.reads_text() && self.applies(other)))
            })
        };
        (rule.requires.is_empty() || rule.requires.iter().any(|id| matched(id)))
            && !rule.unless.iter().any(|id| matched(id))
            && !(rule.silent && self.wrote_stderr)
            && (rule.max_lines == 0 || self.matcher.lines.iter().sum::<u64>() <= u64::from(rule.max_lines))
    }

    fn is_near_end(&self, found: &Match, lines: u32) -> bool {
        let stream = usize::from(found.stream);
        let last = self.matcher.tails.get(stream).and_then(|t| t.as_ref()).map_or(0, |(line, _)| *line);
        found.line + u64::from(lines) > last
    }

    /// What the place of a match is worth. Being last counts for every rule. In a long log the end
    /// is where a run failed, and what lies far before it is mostly noise: a tool's verdict stands,
    /// a phrase loses.
    fn recency(&self, rule: &Rule, found: &Match) -> f64 {
        let place = self.place(found);
        let total: u64 = self.matcher.lines.iter().sum();
        let distance = if total > LONG_LOG_LINES && rule.weight.0 < VERDICT_WEIGHT {
            DISTANCE_WEIGHT * (1.0 - place)
        } else {
            0.0
        };
        let outside = match self.section.filter(|_| rule.weight.0 < HARD_WEIGHT) {
            Some(section) if section.is_after(found) => BEFORE_SECTION_WEIGHT,
            Some(section) if !section.has(found) => BEHIND_SECTION_WEIGHT,
            _ => 0.0,
        };
        let is_quiet =
            total > LONG_LOG_LINES && rule.weight.0 < VERDICT_WEIGHT && is_of_no_failure(&found.text);
        let quiet = if is_quiet { WENT_WELL_WEIGHT } else { 0.0 };
        RECENCY_WEIGHT * place - distance.max(outside).max(quiet)
    }

    /// The last match of a rule, in the section that failed if there is one.
    fn last_match(&self, rule: usize) -> Option<&Match> {
        let matches = || self.matcher.rules[rule].matches().rev();
        matches().find(|found| self.is_inside(found)).or_else(|| matches().next())
    }

    /// Whether a match lies in the section that failed; everything does where there is none.
    fn is_inside(&self, found: &Match) -> bool {
        self.section.is_none_or(|section| section.has(found))
    }

    /// Where a match lies in all of the text, from 0 to 1.
    fn place(&self, found: &Match) -> f64 {
        let total: u64 = self.matcher.lines.iter().map(|n| n + 1).sum();
        let before: u64 = self.matcher.lines.iter().take(usize::from(found.stream)).map(|n| n + 1).sum();
        (before + found.line) as f64 / total.max(1) as f64
    }

    /// The candidate that makes `reason` more precise.
    fn refined<'c, 'm>(
        &self,
        candidates: &'c [Candidate<'m>],
        winner: &Candidate<'m>,
    ) -> Option<&'c Candidate<'m>> {
        let reason = winner.reason;
        let failures = self.failed_count(reason).unwrap_or(1);
        if let Some(finer) = self.same_line(candidates, winner) {
            return Some(finer);
        }
        candidates
            .iter()
            .filter(|c| {
                let rule = self.rule(c);
                rule.refines.contains(&reason) && (!rule.per_failure || c.count >= failures)
            })
            .max_by(|a, b| a.score.total_cmp(&b.score))
    }

    /// An uncaught exception is what its own line says, where that is trouble of the world around
    /// it.
    fn same_line<'c, 'm>(
        &self,
        candidates: &'c [Candidate<'m>],
        winner: &Candidate<'m>,
    ) -> Option<&'c Candidate<'m>> {
        let at = winner.found.filter(|_| winner.reason == Reason::Crash)?;
        let place = |f: &Match| f.line == at.line && f.stream == at.stream;
        let outside = |r: Reason| {
            matches!(r.class(), Class::Transient | Class::System)
                || matches!(
                    r,
                    Reason::AuthError
                        | Reason::PermissionDenied
                        | Reason::NetworkPermanent
                        | Reason::QuotaExhausted
                )
        };
        let on_line = |c: &&Candidate<'_>| self.matcher.rules[c.rule].matches().any(place);
        candidates
            .iter()
            .filter(|c| outside(c.reason) && self.rule(c).weight.0 >= PHRASE_WEIGHT)
            .filter(on_line)
            .max_by(|a, b| a.score.total_cmp(&b.score))
    }

    fn failed_count(&self, reason: Reason) -> Option<u64> {
        self.list(reason, "count").last().and_then(|n| n.replace([',', '\'', ' '], "").parse().ok())
    }

    fn list(&self, reason: Reason, kind: &'static str) -> &[String] {
        let own = self.matcher.facts.get(Some(reason), kind);
        if own.is_empty() { self.matcher.facts.get(None, kind) } else { own }
    }

    fn facts(&self, reason: Reason, winner: Option<&Candidate<'_>>, candidates: &[Candidate<'_>]) -> Facts {
        // What was found for other reasons comes after: a run may lint and test, and both are worth
        // knowing.
        let texts = |kind| {
            let own = self.matcher.facts.get(Some(reason), kind);
            let others =
                FIXABLE.iter().filter(|r| **r != reason).flat_map(|r| self.matcher.facts.get(Some(*r), kind));
            let mut list: Vec<SafeText> = Vec::new();
            for text in own.iter().chain(others).chain(self.matcher.facts.get(None, kind)) {
                let text = self.safe(if kind == "test" { test_name::plain(text) } else { text });
                if list.len() < LIST_MAX && !list.contains(&text) {
                    list.push(text);
                }
            }
            list
        };
        let first = |kind| self.list(reason, kind).first().map(|t| self.safe(t));
        let same: Vec<&Rule> = winner
            .into_iter()
            .chain(candidates.iter().filter(|c| c.reason == reason))
            .map(|c| self.rule(c))
            .collect();
        let from_rules =
            |get: fn(&Rule) -> Option<&str>| same.iter().find_map(|r| get(r)).map(|t| self.safe(t));
        let mut facts = Facts {
            failed_tests: texts("test"),
            failed_count: self.failed_count(reason),
            files: texts("file"),
            line: self.list(reason, "line").first().and_then(|n| n.parse().ok()),
            rules: texts("rule"),
            expected: first("expected"),
            actual: first("actual"),
            missing: self.list(reason, "missing").last().map(|t| self.safe(t)),
            tool: same.iter().find_map(|r| r.tool.as_deref()).map(str::to_owned),
            provider: first("provider").or_else(|| from_rules(|r| r.provider.as_deref())),
            credential: first("credential").or_else(|| from_rules(|r| r.credential.as_deref())),
            renewal: first("renewal").or_else(|| from_rules(|r| r.renewal.as_deref())),
            status: winner.and_then(|w| w.found).and_then(|found| found.status).or(self.signal.status),
            retry_after_seconds: self
                .matcher
                .facts
                .get(Some(reason), "retry_after")
                .last()
                .and_then(|n| n.parse().ok()),
            ..Facts::default()
        };
        if facts.failed_count.is_none() && !facts.failed_tests.is_empty() {
            facts.failed_count = Some(facts.failed_tests.len() as u64);
        }
        if let Some(signal) = self.signal.signal {
            facts.signal = Some(backstop_core::signal_name(signal));
        }
        if self.signal.timed_out || reason == Reason::Timeout {
            let last = self.matcher.tails.iter().flatten().next_back();
            facts.last_activity = last.map(|(_, text)| self.safe(text));
        }
        if let Some((_, exception)) = &self.matcher.exceptions.last {
            let mut exception = exception.clone();
            for text in [&mut exception.message, &mut exception.kind] {
                *text = self.safe(text.raw());
            }
            for text in
                [&mut exception.root, &mut exception.file, &mut exception.function].into_iter().flatten()
            {
                *text = self.safe(text.raw());
            }
            if facts.files.is_empty() {
                facts.files.extend(exception.file.clone());
                facts.line = exception.line;
            }
            facts.exception = Some(exception);
        }
        if facts.files.is_empty() {
            facts.files = self.mentioned_files(reason, winner, candidates);
        }
        if !self.only_reads() {
            self.wait_facts(&mut facts, reason, winner);
        }
        self.provider_facts(&mut facts, reason, winner);
        if reason == Reason::RateLimited {
            let agreeing = candidates.iter().filter(|c| c.reason == reason);
            let lines = winner.into_iter().chain(agreeing).filter_map(|c| c.found);
            let limit = Limit {
                lines: lines.map(|found| found.text.as_str()).collect(),
                wait: facts.retry_after_seconds.and_then(|wait| Duration::try_from_secs_f64(wait).ok()),
                provider: facts.provider.as_ref().map(SafeText::raw),
            };
            facts.window = limit.window();
            let named = limit.lines.iter().find_map(|line| named_model(line));
            facts.model = self.claimed_model().or(named).map(|model| self.safe(&model));
        }
        self.credential_facts(reason, winner, candidates, &mut facts);
        facts
    }

    /// The model whose window refused, as Anthropic's header says.
    fn claimed_model(&self) -> Option<String> {
        let claim = "anthropic-ratelimit-unified-representative-claim";
        let claim = self.signal.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case(claim));
        model_of_window(claim?.1.trim()).map(str::to_owned)
    }

    /// Whose credential was refused, which one it was and how it is renewed, as far as the command,
    /// the decisive lines and the rules say it.
    fn credential_facts(
        &self,
        reason: Reason,
        winner: Option<&Candidate<'_>>,
        candidates: &[Candidate<'_>],
        facts: &mut Facts,
    ) {
        // A limit ends by itself, and may be a subscription's: no credential mends it.
        if reason == Reason::RateLimited {
            return;
        }
        if reason != Reason::AuthError {
            if let (Some(provider), None) = (&facts.provider, &facts.credential)
                && let Some(key) = credential::key_of(provider.raw())
            {
                facts.credential = Some(SafeText::new(key.credential));
                facts.renewal = facts.renewal.take().or(Some(SafeText::new(key.renewal)));
            }
            return;
        }
        let context = credential::Context {
            provider: facts.provider.as_ref().map(SafeText::raw),
            is_named: self.signal.provider.is_some(),
            command: self.signal.command.as_deref(),
            text: &self.decisive_text(reason, winner, candidates),
        };
        let Some(found) = credential::find(&context) else { return };
        if facts.provider.is_none() {
            facts.provider = found.provider.as_deref().map(|provider| self.safe(provider));
        }
        if let Some(credential) = &found.credential {
            facts.credential = Some(self.safe(credential));
            facts.renewal = found.renewal.as_deref().map(SafeText::new);
        }
    }

    /// The lines that the rules of this reason matched, and the last ones.
    fn decisive_text(
        &self,
        reason: Reason,
        winner: Option<&Candidate<'_>>,
        candidates: &[Candidate<'_>],
    ) -> String {
        let agreeing = candidates.iter().filter(|c| c.reason == reason);
        let mut lines: Vec<&str> = Vec::new();
        for candidate in winner.into_iter().chain(agreeing) {
            lines.extend(self.matcher.rules[candidate.rule].matches().map(|found| found.text.as_str()));
        }
        lines.extend(self.matcher.tails.iter().flatten().map(|(_, text)| text.as_str()));
        lines.join("\n")
    }

    /// Files that the decisive lines mention, where no rule captured any.
    fn mentioned_files(
        &self,
        reason: Reason,
        winner: Option<&Candidate<'_>>,
        candidates: &[Candidate<'_>],
    ) -> Vec<SafeText> {
        if self.signal.surface == Surface::Response {
            return Vec::new();
        }
        let mut files: Vec<SafeText> = Vec::new();
        for candidate in winner.into_iter().chain(candidates.iter().filter(|c| c.reason == reason)) {
            let lines = [candidate.found, self.cited(candidate)];
            let lines = lines.into_iter().flatten().map(|found| &*found.text);
            // Where a message was logged is a place in the tool's own source.
            let messages = lines.map(|line| logged_message(line).unwrap_or(line));
            for path in messages.flat_map(mentioned::files) {
                let path = self.safe(path);
                if files.len() < MENTIONED_MAX && !files.contains(&path) {
                    files.push(path);
                }
            }
        }
        files
    }

    /// How long somebody asks to wait, and until when.
    fn wait_facts(&self, facts: &mut Facts, reason: Reason, winner: Option<&Candidate<'_>>) {
        let decided = winner.and_then(|winner| winner.found);
        let asked = waits::read(self.classifier, self.signal, self.matcher, reason, decided);
        facts.should_retry = asked.should_retry;
        if let Some(wait) = asked.wait {
            facts.retry_after_seconds =
                Some(wait.after).filter(|after| !after.is_zero()).map(|after| after.as_secs_f64());
            facts.resets_at = self.signal.at.map(|now| wait.until(now));
            facts.wait_in_words = !wait.is_structured;
        }
    }

    /// Who refused: who was named, else whose client the command is, else whose address the lines
    /// show that decided.
    fn provider_facts(&self, facts: &mut Facts, reason: Reason, winner: Option<&Candidate<'_>>) {
        if let Some(provider) = &self.signal.provider {
            facts.provider = Some(self.safe(provider));
            facts.from_client = true;
        }
        if PROVIDERS_TROUBLE.contains(&reason) {
            let client = self.signal.command.as_deref().and_then(provider_of_command);
            let library = || winner.and_then(|w| w.found).and_then(|found| provider_of_library(&found.text));
            let client = client.or_else(library);
            let shown = || winner.and_then(|w| w.found).and_then(|found| provider_of_text(&found.text));
            facts.from_client |= self.signal.surface == Surface::Response;
            facts.from_client |= match (&facts.provider, client) {
                (Some(named), Some(client)) => named.raw() == client,
                (None, client) => client.is_some(),
                _ => false,
            };
            facts.provider = facts.provider.take().or_else(|| client.or_else(shown).map(SafeText::new));
        }
    }

    /// The line that says why: the best one of the rules that agree with the winner.
    fn cause(
        &self,
        reason: Reason,
        winner: Option<&Candidate<'_>>,
        candidates: &[Candidate<'_>],
    ) -> Option<SafeText> {
        let agreeing = candidates.iter().filter(|c| c.reason == reason);
        let of_text = agreeing.chain(winner).filter(|c| c.found.is_some() && self.rule(c).cause > 0);
        let says_why = |c: &Candidate<'_>| self.cited(c).is_some_and(says_why);
        let best = of_text.max_by(|a, b| {
            let inside = |c: &Candidate<'_>| self.cited(c).is_some_and(|found| self.is_inside(found));
            let order = says_why(a).cmp(&says_why(b)).then(inside(a).cmp(&inside(b)));
            order.then(self.rule(a).cause.cmp(&self.rule(b).cause)).then(a.score.total_cmp(&b.score))
        });
        // A circumstance says nothing about why, and neither does advice; any line that was taken
        // for an error says more.
        let best = best.filter(|c| says_why(c)).or_else(|| {
            let errors = candidates.iter().filter(|c| c.found.is_some() && self.rule(c).cause > 0);
            let other = errors.filter(|c| best.is_none() || says_why(c));
            other.max_by(|a, b| a.score.total_cmp(&b.score)).or(best)
        });
        let found = best.and_then(|c| self.cited(c));
        match found {
            Some(found) => Some(self.safe(stated(found).trim())),
            None => {
                let last = self.matcher.tails.iter().flatten().next_back();
                last.filter(|_| reason != Reason::Timeout && reason != Reason::Interrupted)
                    .map(|(_, text)| self.safe(text.trim()))
            }
        }
    }

    /// The match that is cited for a rule.
    fn cited(&self, candidate: &Candidate<'_>) -> Option<&Match> {
        let state = &self.matcher.rules[candidate.rule];
        let says_why = |found: &&Match| says_why(found);
        let best = |found: &&Match| says_why(found) && self.is_inside(found);
        if self.rule(candidate).pick_last {
            let matches = || state.matches().rev();
            matches().find(best).or_else(|| matches().find(says_why)).or_else(|| matches().next())
        } else {
            let matches = || state.matches();
            matches().find(best).or_else(|| matches().find(says_why)).or_else(|| matches().next())
        }
    }

    fn evidence(
        &self,
        reason: Reason,
        winner: Option<&Candidate<'_>>,
        candidates: &[Candidate<'_>],
    ) -> Vec<Evidence> {
        let mut evidence: Vec<Evidence> = Vec::new();
        let mut others: Vec<&Candidate<'_>> = candidates.iter().collect();
        others.sort_by(|a, b| {
            (b.reason == reason).cmp(&(a.reason == reason)).then(b.score.total_cmp(&a.score))
        });
        let mut add = |candidate: &Candidate<'_>, found: Option<&Match>| {
            let rule = self.rule(candidate);
            let piece = match found {
                Some(found) => Evidence {
                    rule: rule.id.to_string(),
                    line: Some(found.line),
                    text: self.safe(found.text.trim()),
                    stream: (self.matcher.lines.len() > 1)
                        .then(|| stream_name(found.stream, self.signal.surface).to_owned()),
                },
                None => Evidence {
                    rule: rule.id.to_string(),
                    line: None,
                    text: SafeText::new(self.circumstance(rule)),
                    stream: None,
                },
            };
            let known = evidence.iter().any(|e| e.text == piece.text && e.line == piece.line);
            if evidence.len() < EVIDENCE_MAX && !known {
                evidence.push(piece);
            }
        };
        if let Some(winner) = winner {
            add(winner, winner.found);
        }
        for candidate in others.iter().filter(|c| c.reason == reason) {
            add(candidate, self.cited(candidate));
        }
        for candidate in &others {
            add(candidate, candidate.found);
        }
        evidence
    }

    /// The exit code, signal or status that a rule without text matched, in words.
    fn circumstance(&self, rule: &Rule) -> String {
        let signal = self.signal;
        if rule.timed_out {
            return match signal.duration {
                Some(duration) => format!("ended by our clock after {:.1} s", duration.as_secs_f64()),
                None => "ended by our clock".to_owned(),
            };
        }
        match (signal.signal, signal.exit, signal.status, &signal.errno) {
            (Some(n), ..) if !rule.signal.is_empty() => {
                format!("signal {n} ({})", backstop_core::signal_name(n))
            }
            (_, _, Some(status), _) if !rule.status.is_empty() => format!("status {status}"),
            (_, _, _, Some(errno)) if !rule.errno.is_empty() => format!("errno {errno}"),
            (_, Some(code), ..) => format!("exit {code}"),
            _ => "failed".to_owned(),
        }
    }

    fn next(
        &self,
        reason: Reason,
        winner: Option<&Candidate<'_>>,
        candidates: &[Candidate<'_>],
        facts: &Facts,
    ) -> SafeText {
        let agreeing = candidates.iter().filter(|c| c.reason == reason);
        let mut templates: Vec<&str> =
            winner.into_iter().chain(agreeing).filter_map(|c| self.rule(c).next.as_deref()).collect();
        // A login is renewed by a command, which goes before the advice of a rule that does not
        // know whether a key or a login was used.
        let renewed_by_command = facts.renewal.as_ref().is_some_and(|how| how.raw().starts_with('`'));
        if reason == Reason::AuthError && (renewed_by_command || templates.is_empty()) {
            let text = self.decisive_text(reason, winner, candidates);
            if let Some(step) = credential::next_step(facts, &text) {
                return SafeText::new(step);
            }
        }
        if reason == Reason::DependencyMissing {
            templates.push("install {missing}, then run it again");
        }
        if let (true, Some(seconds)) = (reason.retryable(), facts.retry_after_seconds) {
            let wait = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
            return SafeText::new(format!(
                "wait {}, as the server asks, then try again",
                duration::shown(wait)
            ));
        }
        let thrown = facts.exception.as_ref().filter(|_| reason == Reason::Crash);
        if let Some((file, line)) = thrown.and_then(|e| e.file.as_ref().zip(e.line))
            && let Some(file) = file.shaped(Shape::Path)
        {
            return SafeText::new(format!("read {file}:{line}, where it came from"));
        }
        let filled = templates.iter().find_map(|template| self.fill(template, facts));
        SafeText::new(filled.unwrap_or_else(|| reason.first_step()))
    }

    /// Fills a template; nothing if a fact that it names is not known, or is no name.
    fn fill(&self, template: &str, facts: &Facts) -> Option<String> {
        let mut out = String::new();
        let mut rest = template;
        while let Some(open) = rest.find('{') {
            let close = rest[open..].find('}')? + open;
            out.push_str(&rest[..open]);
            let one = |fact: &Option<SafeText>, shape| fact.as_ref().and_then(|t| shaped(t, shape));
            let first = |list: &[SafeText], shape| list.first().and_then(|t| shaped(t, shape));
            let value = match &rest[open + 1..close] {
                "file" => first(&facts.files, Shape::Path),
                "files" => joined(&facts.files),
                "test" => first(&facts.failed_tests, Shape::Test).filter(|test| has_name_of_its_own(test)),
                "rule" => first(&facts.rules, Shape::Name),
                "missing" => one(&facts.missing, Shape::Name).or_else(|| one(&facts.missing, Shape::Path)),
                "package" => one(&facts.missing, Shape::Name).map(|module| python_package(&module)),
                "provider" => one(&facts.provider, Shape::Name),
                "credential" => one(&facts.credential, Shape::Credential),
                "renewal" => facts.renewal.as_ref().map(|t| t.raw().to_owned()),
                "command" => {
                    self.signal.command.as_deref().and_then(|c| shaped(&self.safe(c), Shape::Command))
                }
                _ => None,
            }?;
            out.push_str(&value);
            rest = &rest[close + 1..];
        }
        out.push_str(rest);
        Some(out)
    }

    fn safe(&self, text: &str) -> SafeText {
        let text = self.classifier.redactor.redact(text);
        SafeText::new(&text[..text.floor_char_boundary(TEXT_BYTES_MAX)])
    }
}

/// Whether a match has words that say why: neither advice nor a number alone, such as `1)`.
fn says_why(found: &Match) -> bool {
    let text = stated(found);
    !is_trailing_advice(text)
        && logged_message(text).is_none()
        && text.chars().filter(|c| c.is_alphabetic()).count() >= WORD_LETTERS_MIN
}

/// The part of a match that states the cause: the captured one, unless that is only advice.
fn stated(found: &Match) -> &str {
    found.cause.as_deref().filter(|cause| !is_trailing_advice(cause)).unwrap_or(&found.text)
}

/// Python packages whose module has another name.
const PYTHON_PACKAGES: &[(&str, &str)] = &[
    ("yaml", "PyYAML"),
    ("cv2", "opencv-python"),
    ("sklearn", "scikit-learn"),
    ("skimage", "scikit-image"),
    ("PIL", "pillow"),
    ("bs4", "beautifulsoup4"),
    ("dotenv", "python-dotenv"),
    ("dateutil", "python-dateutil"),
    ("jwt", "PyJWT"),
    ("OpenSSL", "pyOpenSSL"),
    ("MySQLdb", "mysqlclient"),
    ("serial", "pyserial"),
    ("git", "GitPython"),
    ("Crypto", "pycryptodome"),
    ("attr", "attrs"),
    ("docx", "python-docx"),
    ("magic", "python-magic"),
    ("zmq", "pyzmq"),
    ("pkg_resources", "setuptools"),
];

/// The package that has a module of Python: that of `yaml.loader` is `PyYAML`.
fn python_package(module: &str) -> String {
    let root = module.split('.').next().unwrap_or(module);
    let known = PYTHON_PACKAGES.iter().find(|(module, _)| *module == root);
    known.map_or(root, |(_, package)| package).to_owned()
}

/// Whether a runner finds a test by this name: not that of a file that was run as a program, and
/// not that of a module that could not be loaded.
fn has_name_of_its_own(test: &str) -> bool {
    !test.starts_with("__main__.") && !test.contains("_FailedTest")
}

/// A fact for a sentence, if it looks like what it names.
fn shaped(text: &SafeText, shape: Shape) -> Option<String> {
    text.shaped(shape).map(str::to_owned)
}

fn joined(list: &[SafeText]) -> Option<String> {
    let names: Vec<&str> = list.iter().filter_map(|text| text.shaped(Shape::Path)).take(3).collect();
    (!names.is_empty()).then(|| names.join(" "))
}

fn stream_name(stream: u8, surface: Surface) -> &'static str {
    match (surface, stream) {
        (Surface::Response, _) => "response",
        (_, 0) => "stdout",
        _ => "stderr",
    }
}

/// Whether the circumstances that a rule names are those of the signal. What it does not name does
/// not matter.
pub(crate) fn circumstances_fit(rule: &Rule, signal: &Signal, programs: &Programs) -> bool {
    let surface = match signal.surface {
        Surface::Command => rule.on_command,
        Surface::Response => rule.on_response,
    };
    surface
        && (!rule.timed_out || signal.timed_out)
        && (rule.exit.is_empty() || signal.exit.is_some_and(|code| rule.exit.contains(&code)))
        && (rule.signal.is_empty() || signal.signal.is_some_and(|n| rule.signal.contains(&n)))
        && (rule.status.is_empty() || signal.status.is_some_and(|s| rule.status.contains(&s)))
        && (rule.errno.is_empty()
            || signal.errno.as_deref().is_some_and(|e| rule.errno.iter().any(|known| known == e)))
        && (rule.program.is_empty() || programs.runs(&rule.program))
        && (rule.argument.is_empty() || programs.has_word(&rule.argument))
}
