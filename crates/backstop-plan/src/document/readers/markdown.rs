//! What all readers of Markdown share: headings with their labels, list items with their
//! checkboxes, the text and the commands of a section.

use super::super::block::{self, Blocks, Kind, ListItem};
use super::super::checks;
use super::super::draft::{After, Entry, Sentence, Step};
use super::super::error::PlanError;
use super::super::inline::plain;
use super::super::label::{self, Label};
use super::super::mark::{Mark, Place};
use super::super::settings_block;
use super::super::source::Source;
use super::super::status::{self, COLOURED, Status};
use super::super::words::{self, BESIDE, BESIDE_NAMED, DEPENDS, ORDER_SECTIONS, SENTENCE_WAITS, WAITS};
use crate::document::settings::Settings;
use std::ops::Range;

/// A heading with what it begins.
#[derive(Debug, Clone)]
pub(crate) struct Head {
    /// Its line, counted from 0.
    pub(crate) line: usize,
    pub(crate) level: usize,
    /// Its text without markup and marks.
    pub(crate) text: String,
    pub(crate) label: Option<Label>,
    /// The line after its own text: the next heading.
    pub(crate) own_end: usize,
    /// The line after its section: the next heading of its level or above.
    pub(crate) end: usize,
    pub(crate) status: Status,
    pub(crate) beside: bool,
    pub(crate) mark: Mark,
}

/// A Markdown document.
pub(crate) struct Markdown<'t> {
    pub(crate) source: Source<'t>,
    pub(crate) blocks: Blocks<'t>,
    pub(crate) heads: Vec<Head>,
    /// Which of the plan's files it is.
    file: usize,
}

impl<'t> Markdown<'t> {
    /// Finds headings and list items.
    pub(crate) fn read(text: &'t [u8], file: usize) -> Result<Self, PlanError> {
        let source = Source::new(text)?;
        let mut blocks = block::read_bounded(&source)?;
        add_unmarked_headings(&source, &mut blocks);
        let mut all = Self { source, blocks, heads: Vec::new(), file };
        all.heads = all.find_heads();
        Ok(all)
    }

    fn find_heads(&self) -> Vec<Head> {
        let count = self.source.count();
        let headings = &self.blocks.headings;
        let mut ends = vec![count; headings.len()];
        let mut open: Vec<usize> = Vec::new();
        for (at, heading) in headings.iter().enumerate() {
            while let Some(&last) = open.last().filter(|last| headings[**last].level >= heading.level) {
                ends[last] = heading.line;
                open.pop();
            }
            open.push(at);
        }
        let head = |(at, heading): (usize, &block::Heading<'t>)| {
            let from = heading.text.as_ptr() as usize - self.source.text().as_ptr() as usize;
            let found = sign(heading.text);
            let place = match found {
                Sign::Box { at, bare, .. } => Place::Box { at: from + at, bare },
                Sign::Picture { ref range, .. } => Place::Sign {
                    at: from + heading.text.len(),
                    there: Some(from + range.start..from + range.end),
                },
                Sign::None => Place::Sign { at: from + heading.text.len(), there: None },
            };
            let bare = without_sign(heading.text, &found);
            let (bare, beside) = without_parallel(&plain(&bare));
            Head {
                line: heading.line,
                level: heading.level,
                label: label::heading(&bare),
                text: bare,
                own_end: headings.get(at + 1).map_or(count, |next| next.line),
                end: ends[at],
                status: found.status(),
                beside,
                mark: Mark { file: self.file, place },
            }
        };
        headings.iter().enumerate().map(head).collect()
    }

    /// The text of these lines, without empty ones at the end.
    pub(crate) fn text(&self, lines: Range<usize>) -> String {
        let text = &self.source.text()[self.source.start(lines.start)..self.source.start(lines.end)];
        text.trim_end().to_owned()
    }

    /// The byte at which a line's text begins.
    pub(crate) fn at(&self, line: usize) -> usize {
        self.source.start(line)
    }

    /// The byte at which a part of the text begins.
    pub(crate) fn place(&self, part: &str) -> usize {
        part.as_ptr() as usize - self.source.text().as_ptr() as usize
    }

    /// What remarks in brackets say that a heading or an item waits for: `UI (after Task 1)`.
    fn waits_in_remarks(&self, text: &str) -> Option<After> {
        let named = remarks(text).filter_map(|remark| waits_in(remark));
        let named: Vec<(String, usize)> = named.map(|part| (part.to_owned(), self.place(part))).collect();
        (!named.is_empty()).then_some(After::Named(named))
    }

    /// The list items in these lines, with their places in the list of all.
    pub(crate) fn items(&self, lines: Range<usize>) -> Range<usize> {
        let items = &self.blocks.items;
        let place = |line: usize| items.partition_point(|item| item.line < line);
        place(lines.start)..place(lines.end)
    }

    /// An item.
    pub(crate) fn item(&self, at: usize) -> &ListItem<'t> {
        &self.blocks.items[at]
    }

    /// The line after an item and what is nested in it.
    pub(crate) fn item_end(&self, at: usize, limit: usize) -> usize {
        let own = &self.blocks.items[at];
        let next = self.blocks.items[at + 1..]
            .iter()
            .take_while(|item| item.line < limit)
            .find(|item| item.depth <= own.depth);
        let mut end = next.map_or(limit, |item| item.line);
        // A paragraph at the margin after an empty line is not the item's.
        let mut after_blank = false;
        for line in own.line + 1..end {
            let text = self.source.line(line);
            let is_margin = !text.starts_with([' ', '\t']);
            if after_blank
                && is_margin
                && matches!(self.blocks.kinds[line], Kind::Text | Kind::Quote | Kind::Fence)
            {
                end = line;
                break;
            }
            after_blank = self.blocks.kinds[line] == Kind::Blank;
        }
        end
    }

    /// The mark of an item's checkbox.
    pub(crate) fn item_mark(&self, item: &ListItem<'_>) -> Option<Mark> {
        let checkbox = &self.blocks.checkboxes[item.checkbox? as usize];
        Some(Mark { file: self.file, place: Place::Box { at: checkbox.mark, bare: checkbox.bare } })
    }

    /// What an item's checkbox says.
    pub(crate) fn item_status(&self, item: &ListItem<'_>) -> Status {
        match item.checkbox.map(|at| &self.blocks.checkboxes[at as usize]) {
            Some(checkbox) if checkbox.done => Status::Complete,
            Some(checkbox) if checkbox.left_out => Status::Skipped,
            Some(_) => Status::NotStarted,
            None => Status::Unknown,
        }
    }

    /// The checkboxes among these items as steps.
    pub(crate) fn steps(&self, items: Range<usize>) -> Vec<Step> {
        let base = self.blocks.items[items.clone()].iter().map(|item| item.depth).min().unwrap_or(0);
        let step = |item: &ListItem<'t>| {
            let (mark, status) = (self.item_mark(item)?, self.item_status(item));
            Some(Step {
                text: plain(item.text),
                done: matches!(status, Status::Complete | Status::Skipped),
                depth: item.depth - base,
                line: item.line,
                // Nobody does what is left out, so that nobody ticks it off.
                mark: (status != Status::Skipped).then_some(mark),
            })
        };
        self.blocks.items[items].iter().filter_map(step).collect()
    }

    /// An entry for an item: its text with what is nested in it, below the heading that it is
    /// under.
    pub(crate) fn entry_of_item(&self, at: usize, limit: usize, under: Option<&Head>) -> Entry {
        let item = self.item(at);
        let end = self.item_end(at, limit);
        let nested = at + 1..self.items(item.line..end).end.max(at + 1);
        let heading =
            under.map(|head| format!("{}\n\n", self.source.line(head.line).trim())).unwrap_or_default();
        let after = self.depends(item.line + 1..end).or_else(|| self.waits_in_remarks(item.text));
        let mark = self.item_mark(item);
        let (status, mark, text) = match mark {
            Some(mark) => (self.item_status(item), Some(mark), item.text.to_owned()),
            None => self.line_sign(item),
        };
        let (name, beside) = without_parallel(&plain(&text));
        Entry {
            id: String::new(),
            at: self.at(item.line),
            name,
            line: item.line,
            section: format!("{heading}{}", self.text(item.line..end)),
            after: after.unwrap_or_default(),
            hints: self.named_behind(item.text, WAITS),
            with: self.named_beside(item.text, item.line + 1..end),
            beside: beside || self.is_beside(item.line + 1..end),
            status,
            marks: mark.into_iter().collect(),
            steps: self.steps(nested),
            ..Entry::default()
        }
    }

    /// The sign of an item without a checkbox, where it is written, and the text without it.
    fn line_sign(&self, item: &ListItem<'_>) -> (Status, Option<Mark>, String) {
        let from = item.text.as_ptr() as usize - self.source.text().as_ptr() as usize;
        let found = sign(item.text);
        let there = match &found {
            Sign::Picture { range, .. } => Some(from + range.start..from + range.end),
            _ => None,
        };
        let place = Place::Sign { at: from + item.text.len(), there };
        (found.status(), Some(Mark { file: self.file, place }), without_sign(item.text, &found))
    }

    /// What a text names behind one of these words.
    fn named_behind(&self, text: &str, words: &[&str]) -> Vec<(String, usize)> {
        let from = self.place(text);
        words::behind(text, words).into_iter().map(|(value, at)| (plain(value), from + at)).collect()
    }

    /// What an entry says it may run beside: in its text, or in a field of these lines.
    fn named_beside(&self, text: &str, lines: Range<usize>) -> Vec<(String, usize)> {
        let mut named = self.named_behind(text, BESIDE_NAMED);
        named.extend(self.field(lines, BESIDE).map(|(value, at)| (plain(&value), at)));
        named
    }

    /// The lines of a section that say something about its heading, and not about a checkbox or a
    /// labelled heading in it.
    fn own_lines(&self, head: &Head) -> Vec<Range<usize>> {
        let next = self.heads.partition_point(|below| below.line <= head.line);
        let mut inside = self.heads[next..].iter().take_while(|below| below.line < head.end);
        let end = inside.find(|below| below.label.is_some()).map_or(head.end, |below| below.line);
        let mut lines = Vec::new();
        let mut from = head.line + 1;
        for at in self.items(head.line + 1..end) {
            let item = self.item(at);
            if item.checkbox.is_some() && item.line >= from {
                lines.push(from..item.line);
                from = self.item_end(at, end);
            }
        }
        lines.push(from..end);
        lines
    }

    /// What the sections about the order of the plan say.
    pub(crate) fn order_sentences(&self) -> Vec<Sentence> {
        let is_order = |head: &&Head| {
            head.label.is_none() && ORDER_SECTIONS.contains(&head.text.to_lowercase().trim_end_matches(':'))
        };
        let lines = self.heads.iter().filter(is_order).flat_map(|head| head.line + 1..head.end);
        let is_prose =
            |line: &usize| matches!(self.blocks.kinds[*line], Kind::Text | Kind::Item | Kind::Quote);
        lines.filter(is_prose).filter_map(|line| sentence(self.source.line(line))).collect()
    }

    /// An entry for a heading and its whole section.
    pub(crate) fn entry_of_head(&self, head: &Head) -> Entry {
        let label = head.label.as_ref();
        let name =
            label.map(|label| label.name.as_str()).filter(|name| !name.is_empty()).unwrap_or(&head.text);
        let (own, line) = (self.own_lines(head), self.source.line(head.line));
        let mut hints = self.named_behind(line, WAITS);
        for line in own.iter().flat_map(Clone::clone) {
            // A sentence of the section: `Requires Steps 2 and 3.`
            let text = self.source.line(line);
            let begins =
                |word: &str| words::begins_with(text.trim_start_matches(['-', '*', '_', ' ', '>']), word);
            if matches!(self.blocks.kinds[line], Kind::Text | Kind::Item | Kind::Quote)
                && WAITS.iter().any(|word| begins(word))
            {
                hints.extend(self.named_behind(text, WAITS).into_iter().take(1));
            }
        }
        Entry {
            id: label.map(|label| label.id.clone()).unwrap_or_default(),
            at: self.at(head.line),
            name: name.to_owned(),
            line: head.line,
            section: self.text(head.line..head.end),
            after: own
                .iter()
                .find_map(|lines| self.depends(lines.clone()))
                .or_else(|| self.waits_in_remarks(line))
                .unwrap_or_default(),
            hints,
            with: self.named_beside(line, own.first().cloned().unwrap_or_default()),
            beside: head.beside || self.is_beside(head.line + 1..head.own_end),
            status: head.status,
            marks: vec![head.mark.clone()],
            estimate: self
                .field(head.line + 1..head.own_end, &["estimate", "effort", "time"])
                .map(|(value, _)| value),
            settings: None,
            ..Entry::default()
        }
    }

    /// The value of the first of these fields in these lines, with the byte where it begins:
    /// `**Depends on**: Phase 1`, `- Dependencies: T001`.
    pub(crate) fn field(&self, lines: Range<usize>, names: &[&str]) -> Option<(String, usize)> {
        const NAME_BYTES_MAX: usize = 64;
        for line in lines {
            if !matches!(self.blocks.kinds.get(line), Some(Kind::Text | Kind::Item | Kind::Quote)) {
                continue;
            }
            let text = self.source.line(line);
            let mut chars = text.char_indices().take_while(|(at, _)| *at < NAME_BYTES_MAX);
            let Some((colon, sign)) = chars.find(|(_, c)| matches!(c, ':' | '：')) else {
                continue;
            };
            let name =
                plain(text[..colon].trim_start_matches([' ', '\t', '>', '-', '*', '+'])).to_lowercase();
            let name = name.trim_matches(|c: char| !c.is_alphanumeric());
            if names.contains(&name) {
                let value = text[colon + sign.len_utf8()..].trim_start_matches(['*', '_', ' ', '\t']);
                return Some((value.trim_end().to_owned(), self.at(line) + text.len() - value.len()));
            }
        }
        None
    }

    /// What the fields of these lines say that they wait for. Prose names nobody.
    pub(crate) fn depends(&self, lines: Range<usize>) -> Option<After> {
        let (value, at) = self.field(lines, DEPENDS)?;
        let value = plain(&value);
        if value.is_empty() || value.split_whitespace().count() > 24 {
            return None;
        }
        Some(After::Named(vec![(value, at)]))
    }

    /// Whether a field of these lines says that it may run beside others.
    fn is_beside(&self, lines: Range<usize>) -> bool {
        self.field(lines, BESIDE).is_some_and(|(value, _)| {
            let value = value.trim_matches(['*', '_']).to_lowercase();
            ["yes", "true", "✅", "y", "safe"].iter().any(|yes| value.starts_with(yes))
        })
    }

    /// The commands in these lines that check the work.
    pub(crate) fn checks(&self, lines: Range<usize>) -> (Vec<String>, Vec<(usize, String)>) {
        let mut is_shell = false;
        let mut open = false;
        let found = lines.filter_map(|line| {
            let text = self.source.line(line);
            match self.blocks.kinds[line] {
                Kind::Fence => {
                    open = !open;
                    let info = text.trim().trim_start_matches(['`', '~']).trim();
                    is_shell = open && ["", "sh", "bash", "shell", "zsh", "console"].contains(&info);
                    None
                }
                Kind::Code if is_shell => Some((line, text, true)),
                Kind::Item | Kind::Text => Some((line, text, false)),
                _ => None,
            }
        });
        checks::commands(found.collect::<Vec<_>>().into_iter())
    }

    /// The heading of the section in which a line is, at whatever level.
    pub(crate) fn head_of(&self, line: usize) -> Option<usize> {
        self.heads.partition_point(|head| head.line <= line).checked_sub(1)
    }

    /// The settings blocks: of the plan, before the first of these lines, and of the ranges.
    #[expect(clippy::type_complexity)] // One caller, which takes it apart at once.
    pub(crate) fn settings(
        &self,
        parts: &[Range<usize>],
    ) -> Result<(Settings, String, Vec<Option<Settings>>), Vec<PlanError>> {
        let (mut defaults, mut text, mut errors) = (Settings::default(), String::new(), Vec::new());
        let mut own: Vec<Option<Settings>> = vec![None; parts.len()];
        for fence in &self.blocks.settings {
            let settings = match settings_block::read(&self.source, fence) {
                Ok(settings) => settings,
                Err(errors_of_block) => {
                    errors.extend(errors_of_block);
                    continue;
                }
            };
            match parts.iter().position(|lines| lines.contains(&fence.open)) {
                Some(part) => own[part] = Some(settings),
                None => {
                    text = settings_block::text(&self.source, fence);
                    defaults = settings;
                }
            }
        }
        if errors.is_empty() { Ok((defaults, text, own)) } else { Err(errors) }
    }
}

/// What a sentence says about the order: `Phase 2 depends on Phase 1`, `1 → (2 ∥ 3) → 4`, `Phases 2
/// and 3 can run in parallel`.
fn sentence(line: &str) -> Option<Sentence> {
    const SENTENCE_CHARS_MAX: usize = 300;
    let text = plain(line.trim_start_matches([' ', '\t', '-', '*', '+', '>']));
    if text.chars().count() > SENTENCE_CHARS_MAX {
        return None;
    }
    let text = text.trim().trim_end_matches('.');
    let arrows = text.replace("-->", "→").replace("->", "→").replace("=>", "→").replace('➜', "→");
    if arrows.contains('→') {
        let part = |part: &str| {
            let inner = part.trim().trim_matches(['(', ')', '[', ']', '{', '}']);
            inner.replace("||", ",").replace(['∥', '|', '/'], ",")
        };
        return Some(Sentence::Chain(arrows.split('→').map(part).collect()));
    }
    let lower = text.to_lowercase();
    if lower.len() != text.len() {
        return None;
    }
    if lower.contains("parallel") {
        let end = [" can ", " may ", " are ", " run ", " in parallel"]
            .iter()
            .filter_map(|word| lower.find(word))
            .min()?;
        return Some(Sentence::Beside(text[..end].to_owned()));
    }
    let (at, word) = SENTENCE_WAITS.iter().filter_map(|word| Some((lower.find(word)?, word))).min()?;
    let who = text[..at].trim_end_matches([':', ' ']);
    let on = text[at + word.len()..].split([';', '(', '—']).next().unwrap_or_default();
    Some(Sentence::Waits(who.to_owned(), on.trim().to_owned()))
}

/// Adds lines that are headings in all but their marks, where no heading is labelled: `**Phase 1:
/// Setup**`, and in a text without checkboxes `Phase 1: set it up`.
fn add_unmarked_headings<'t>(source: &Source<'t>, blocks: &mut Blocks<'t>) {
    /// Below all that are marked.
    const LEVEL: usize = 7;
    let is_labelled = |text: &str| label::heading(&plain(text)).is_some_and(|label| !label.word.is_empty());
    if blocks.headings.iter().any(|heading| is_labelled(heading.text)) {
        return;
    }
    let is_bold = |text: &str| {
        let inner =
            ["**", "__"].iter().find_map(|mark| Some((text.strip_prefix(mark)?.split_once(mark)?, *mark)));
        // `**Step 2: API** (depends on step 1) ✅`: what follows is a remark, a mark, or both.
        let is_mark = |rest: &str| !rest.contains(char::is_alphanumeric);
        let is_remark = |rest: &str| {
            rest.starts_with('(') && rest.rsplit_once(')').is_some_and(|(_, after)| is_mark(after))
        };
        inner.is_some_and(|((_, rest), _)| is_mark(rest) || is_remark(rest.trim())) && is_labelled(text)
    };
    let is_plain = |text: &str| {
        let label = label::heading(text).filter(|label| !label.word.is_empty() && !label.name.is_empty());
        let Some(label) = label else { return false };
        let before = &text[..text.len() - label.name.len()];
        text.starts_with(char::is_alphanumeric)
            && before.trim_end().ends_with([':', '.', '-', '–', '—', '：'])
    };
    let lines: Vec<usize> = (0..source.count())
        .filter(|line| blocks.kinds[*line] == Kind::Text && !source.line(*line).contains('|'))
        .collect();
    let of = |wanted: &dyn Fn(&str) -> bool| -> Vec<usize> {
        lines.iter().copied().filter(|line| wanted(source.line(*line).trim())).collect()
    };
    let mut found = of(&is_bold);
    if found.len() < 2 && blocks.checkboxes.is_empty() {
        found = of(&is_plain);
    }
    if found.len() < 2 || blocks.headings.len() + found.len() > super::super::HEADINGS_MAX {
        return;
    }
    for line in found {
        blocks.kinds[line] = Kind::Heading;
        blocks.headings.push(block::Heading { line, level: LEVEL, text: source.line(line).trim() });
    }
    blocks.headings.sort_by_key(|heading| heading.line);
}

/// A mark in a heading.
enum Sign {
    None,
    Picture { range: Range<usize>, status: Status },
    Box { at: usize, bare: bool, done: bool, range: Range<usize> },
}

impl Sign {
    fn status(&self) -> Status {
        match self {
            Sign::None => Status::Unknown,
            Sign::Picture { status, .. } => *status,
            Sign::Box { done: true, .. } => Status::Complete,
            Sign::Box { .. } => Status::NotStarted,
        }
    }
}

/// The mark at the start or the end of a text.
fn sign(text: &str) -> Sign {
    for (marker, done) in [("[ ]", false), ("[x]", true), ("[X]", true)] {
        let place = if text.starts_with(marker) {
            Some(0)
        } else {
            text.ends_with(marker).then(|| text.len() - marker.len())
        };
        if let Some(at) = place {
            return Sign::Box { at: at + 1, bare: false, done, range: at..at + marker.len() };
        }
    }
    let lower = text.to_lowercase();
    for word in ["(done)", "(complete)", "(completed)", "[done]", "[complete]", "[completed]", "(skipped)"] {
        if lower.len() == text.len() && lower.ends_with(word) {
            let status = if word == "(skipped)" { Status::Skipped } else { Status::Complete };
            return Sign::Picture { range: text.len() - word.len()..text.len(), status };
        }
    }
    let bare = text.trim_end_matches(COLOURED);
    if let Some((at, c)) = bare.char_indices().next_back()
        && let Some(status) = status::picture(c)
    {
        return Sign::Picture { range: at..text.len(), status };
    }
    if let Some(c) = text.chars().next()
        && let Some(status) = status::picture(c)
    {
        let end = c.len_utf8();
        let end = if text[end..].starts_with(COLOURED) { end + COLOURED.len_utf8() } else { end };
        return Sign::Picture { range: 0..end, status };
    }
    Sign::None
}

fn without_sign(text: &str, sign: &Sign) -> String {
    let range = match sign {
        Sign::None => return text.to_owned(),
        Sign::Picture { range, .. } | Sign::Box { range, .. } => range.clone(),
    };
    let left = format!("{}{}", &text[..range.start], &text[range.end..]);
    left.trim().trim_end_matches(['-', '–', '—']).trim().to_owned()
}

/// Words of a remark that say that an entry may run beside others.
const PARALLEL: &[&str] = &["parallel", "in parallel", "can run in parallel", "parallelizable", "p"];

/// The remarks in round brackets.
fn remarks(text: &str) -> impl Iterator<Item = &str> {
    text.split('(').skip(1).filter_map(|part| part.split_once(')').map(|(remark, _)| remark))
}

/// The names in a remark after a word such as `depends on`, where the first can only be a phase:
/// `needs S3` and `after lunch` are prose.
fn waits_in(remark: &str) -> Option<&str> {
    let lower = remark.to_ascii_lowercase();
    let begins = |word: &str| {
        let at = lower.find(word)?;
        let is_word = !lower[..at].ends_with(|c: char| c.is_ascii_alphanumeric());
        is_word.then_some(at + word.len())
    };
    let behind = &remark[WAITS.iter().find_map(|word| begins(word))?..];
    let part = behind.split(';').next().unwrap_or(behind).trim_matches([' ', ':', '.', ',']);
    let first = part.split([',', '&']).next().unwrap_or(part);
    let first = words::joined(first).into_iter().next().unwrap_or_default();
    let is_labelled = || label::heading(&label::singular(&first)).is_some_and(|label| !label.word.is_empty());
    let is_number = first.trim_start_matches('#').split(['-', '–']).all(|end| label::is_number(end.trim()));
    let is_name = first.split_whitespace().count() <= 3 && (is_number || is_labelled());
    is_name.then_some(part)
}

/// A text without a remark that begins with "parallel" and says nothing but that and what is waited
/// for.
fn without_parallel_remark(text: &str) -> Option<String> {
    let remark = remarks(text).find(|remark| {
        let first = remark.split([',', ';']).next().unwrap_or(remark).trim().to_ascii_lowercase();
        PARALLEL.contains(&first.as_str())
            && (!words::behind(remark, WAITS).is_empty() || !remark.contains([',', ';']))
    })?;
    let left = text.replacen(&format!("({remark})"), "", 1);
    Some(left.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// A text without what says that it may run beside others, and whether it does.
fn without_parallel(text: &str) -> (String, bool) {
    let lower = text.to_lowercase();
    for word in
        ["[p]", "[parallel]", "(parallel)", "(can run in parallel)", "(in parallel)", "(parallelizable)"]
    {
        if let Some(at) = lower.find(word).filter(|_| lower.len() == text.len()) {
            let left = format!("{} {}", text[..at].trim_end(), text[at + word.len()..].trim_start());
            return (left.trim().to_owned(), true);
        }
    }
    match without_parallel_remark(text) {
        Some(left) => (left, true),
        None => (text.to_owned(), false),
    }
}
