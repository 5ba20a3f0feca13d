//! What each line of a plan is: heading, list item, quote, code, and so on.
//!
//! It follows CommonMark as far as a plan needs it, and is more lenient in two places: inside a
//! list any indentation may be a list item or a fence, and a fence is only ended by a fence. It
//! must not know what a phase is.

use super::error::{PlanError, PlanErrorKind};
use super::source::Source;
use super::{HEADINGS_MAX, TASKS_MAX};

/// The kind of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Blank,
    Text,
    Heading,
    Quote,
    /// A list item, checkbox or not.
    Item,
    /// The first or last line of fenced code.
    Fence,
    /// Inside fenced code.
    Code,
    /// Inside an HTML comment.
    Comment,
}

/// A heading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Heading<'t> {
    pub(crate) line: usize,
    pub(crate) level: usize,
    pub(crate) text: &'t str,
}

/// A checkbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Checkbox<'t> {
    pub(crate) line: usize,
    /// The byte after the opening bracket.
    pub(crate) mark: usize,
    /// Whether there is nothing between the brackets, not even a space.
    pub(crate) bare: bool,
    pub(crate) done: bool,
    /// Whether it is marked as optional (`[ ]*`) or cancelled (`[-]`).
    pub(crate) left_out: bool,
    /// Whether its sign is a hyphen: cancelled, but for Kiro, where it is in progress.
    pub(crate) is_hyphen: bool,
    pub(crate) depth: usize,
    pub(crate) text: &'t str,
}

/// A list item, checkbox or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ListItem<'t> {
    pub(crate) line: usize,
    pub(crate) depth: usize,
    /// The number of an item of a numbered list, as it is written.
    pub(crate) number: Option<&'t str>,
    /// Its checkbox, as an index into the list of all.
    pub(crate) checkbox: Option<u32>,
    /// Its text, without marker and checkbox.
    pub(crate) text: &'t str,
}

/// Fenced code whose info string begins with `backstop`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SettingsFence {
    /// The line of the opening fence.
    pub(crate) open: usize,
    /// The line of the closing fence.
    pub(crate) close: Option<usize>,
    /// How far the opening fence is indented, in bytes.
    pub(crate) indent: usize,
}

/// All lines of a plan with their kinds, and its headings, checkboxes and settings blocks in order.
/// Headings and checkboxes are collected up to one more than their limit, so that exceeding it is
/// noticed.
#[derive(Default)]
pub(crate) struct Blocks<'t> {
    pub(crate) kinds: Vec<Kind>,
    pub(crate) headings: Vec<Heading<'t>>,
    pub(crate) checkboxes: Vec<Checkbox<'t>>,
    pub(crate) items: Vec<ListItem<'t>>,
    pub(crate) settings: Vec<SettingsFence>,
    /// The line of a fence or comment that is never closed.
    pub(crate) unclosed: Option<(usize, &'static str)>,
}

/// The most list items that are collected.
const ITEMS_MAX: usize = 200_000;
/// The word that makes fenced code a settings block.
const SETTINGS: &str = "backstop";
/// The deepest indentation, in columns, that is not indented code.
const INDENT_MAX: usize = 3;
/// The longest number of a list item, in digits, as in CommonMark.
const NUMBER_DIGITS_MAX: usize = 9;

struct Fence {
    line: usize,
    mark: u8,
    length: usize,
    columns: usize,
    settings: bool,
}

#[derive(Default)]
struct Reader<'t> {
    blocks: Blocks<'t>,
    fence: Option<Fence>,
    comment: Option<usize>,
    /// The indentation of the list items that we are in.
    list: Vec<usize>,
    after_blank: bool,
}

/// Finds the kind of each line.
pub(crate) fn read<'t>(source: &Source<'t>) -> Blocks<'t> {
    let mut reader = Reader::default();
    reader.blocks.kinds.reserve_exact(source.count());
    for line in 0..source.count() {
        let kind = reader.kind(line, source.line(line), source.start(line));
        reader.after_blank = kind == Kind::Blank;
        reader.blocks.kinds.push(kind);
        reader.underlined(source, line);
    }
    let fence = reader.fence.map(|fence| (fence.line, "code fence"));
    reader.blocks.unclosed = fence.or(reader.comment.map(|line| (line, "HTML comment")));
    reader.blocks
}

/// Finds the kind of each line of a text that has no more tasks and headings than are allowed.
pub(crate) fn read_bounded<'t>(source: &Source<'t>) -> Result<Blocks<'t>, PlanError> {
    let blocks = read(source);
    let too_many =
        |line: usize, what, limit| PlanError::at(line + 1, 1, PlanErrorKind::TooMany { what, limit });
    if let Some(one_more) = blocks.checkboxes.get(TASKS_MAX) {
        return Err(too_many(one_more.line, "tasks", TASKS_MAX));
    }
    if let Some(one_more) = blocks.headings.get(HEADINGS_MAX) {
        return Err(too_many(one_more.line, "headings", HEADINGS_MAX));
    }
    Ok(blocks)
}

impl<'t> Reader<'t> {
    /// Makes a heading of the line before this one, if this one underlines it: a short line of its
    /// own, as people write them.
    fn underlined(&mut self, source: &Source<'t>, line: usize) {
        const HEADING_CHARS_MAX: usize = 100;
        const UNDERLINE_MIN: usize = 3;
        let text = source.line(line).trim_end();
        let level = match text.bytes().next() {
            Some(b'=') => 1,
            Some(b'-') => 2,
            _ => return,
        };
        let kinds = &self.blocks.kinds;
        let is_text = |at: Option<usize>| at.and_then(|at| kinds.get(at)) == Some(&Kind::Text);
        let is_line = text.len() >= UNDERLINE_MIN && text.bytes().all(|byte| byte == text.as_bytes()[0]);
        let (above, before) = (line.checked_sub(1), line.checked_sub(2));
        if !is_line || kinds[line] != Kind::Text || !is_text(above) || is_text(before) {
            return;
        }
        let heading = source.line(line - 1).trim();
        if heading.contains('|') || heading.chars().count() > HEADING_CHARS_MAX {
            return;
        }
        self.list.clear();
        self.blocks.kinds[line - 1] = Kind::Heading;
        if self.blocks.headings.len() <= HEADINGS_MAX {
            self.blocks.headings.push(Heading { line: line - 1, level, text: heading });
        }
    }

    fn kind(&mut self, line: usize, text: &'t str, start: usize) -> Kind {
        let (columns, bytes) = indentation(text);
        let rest = &text[bytes..];
        if let Some(fence) = &self.fence {
            if !closes(fence, columns, rest) {
                return Kind::Code;
            }
            if fence.settings
                && let Some(settings) = self.blocks.settings.last_mut()
            {
                settings.close = Some(line);
            }
            self.fence = None;
            return Kind::Fence;
        }
        if self.comment.is_some() {
            if text.contains("-->") {
                self.comment = None;
            }
            return Kind::Comment;
        }
        if rest.is_empty() {
            return Kind::Blank;
        }
        let shallow = columns <= INDENT_MAX;
        if shallow && let Some(comment) = rest.strip_prefix("<!--") {
            self.comment = (!comment.contains("-->")).then_some(line);
            return Kind::Comment;
        }
        if (shallow || !self.list.is_empty())
            && let Some((mark, length, info)) = opens(rest)
        {
            let settings = info.split_whitespace().next() == Some(SETTINGS);
            if settings {
                self.blocks.settings.push(SettingsFence { open: line, close: None, indent: bytes });
            }
            self.fence = Some(Fence { line, mark, length, columns, settings });
            return Kind::Fence;
        }
        if shallow && let Some((level, text)) = heading(rest) {
            self.list.clear();
            if self.blocks.headings.len() <= HEADINGS_MAX {
                self.blocks.headings.push(Heading { line, level, text });
            }
            return Kind::Heading;
        }
        if shallow && rest.starts_with('>') {
            self.list.clear();
            return Kind::Quote;
        }
        if (shallow || !self.list.is_empty())
            && let Some(after) = item(rest)
        {
            while self.list.last().is_some_and(|outer| *outer >= columns) {
                self.list.pop();
            }
            let depth = self.list.len();
            self.list.push(columns);
            let number = rest.find(['.', ')']).map(|end| &rest[..end]);
            let number = number
                .filter(|number| number.bytes().all(|byte| byte.is_ascii_digit()) && !number.is_empty());
            let mut item = ListItem { line, depth, number, checkbox: None, text: after.trim() };
            if let Some((mark, bare, sign)) = checkbox(after)
                && self.blocks.checkboxes.len() <= TASKS_MAX
            {
                let at = text.len() - after.len() + mark;
                let end = at + if bare { 1 } else { sign.len_utf8() + 1 };
                let is_optional = text[end..].starts_with('*');
                item.text = text[end + usize::from(is_optional)..].trim();
                item.checkbox = u32::try_from(self.blocks.checkboxes.len()).ok();
                self.blocks.checkboxes.push(Checkbox {
                    line,
                    mark: start + at,
                    bare,
                    done: is_tick(sign),
                    is_hyphen: sign == '-',
                    left_out: sign == '-' || (is_optional && matches!(sign, ' ' | ']')),
                    depth,
                    text: item.text,
                });
            }
            if self.blocks.items.len() <= ITEMS_MAX {
                self.blocks.items.push(item);
            }
            return Kind::Item;
        }
        if columns == 0 && self.after_blank {
            self.list.clear();
        }
        Kind::Text
    }
}

/// How far a line is indented, in columns (a tab goes to the next multiple of four) and in bytes.
fn indentation(text: &str) -> (usize, usize) {
    let mut columns = 0;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b' ' => columns += 1,
            b'\t' => columns += 4 - columns % 4,
            _ => return (columns, at),
        }
    }
    (columns, text.len())
}

fn run(text: &str, of: u8) -> usize {
    text.bytes().take_while(|byte| *byte == of).count()
}

/// The mark, the length and the info string of an opening fence.
fn opens(rest: &str) -> Option<(u8, usize, &str)> {
    let mark = *rest.as_bytes().first().filter(|byte| matches!(byte, b'`' | b'~'))?;
    let length = run(rest, mark);
    let info = rest[length..].trim();
    (length >= 3 && (mark == b'~' || !info.contains('`'))).then_some((mark, length, info))
}

fn closes(fence: &Fence, columns: usize, rest: &str) -> bool {
    let length = run(rest, fence.mark);
    length >= fence.length && columns <= fence.columns + INDENT_MAX && rest[length..].trim().is_empty()
}

/// The level and the text of a heading.
fn heading(rest: &str) -> Option<(usize, &str)> {
    let level = run(rest, b'#');
    let text = &rest[level..];
    if !(1..=6).contains(&level) || !(text.is_empty() || text.starts_with([' ', '\t'])) {
        return None;
    }
    let text = text.trim();
    let open = text.trim_end_matches('#');
    // Closing marks need a space before them.
    Some((level, if open.is_empty() || open.ends_with([' ', '\t']) { open.trim_end() } else { text }))
}

/// What follows the marker of a list item.
fn item(rest: &str) -> Option<&str> {
    let marker = match rest.as_bytes().first()? {
        b'-' | b'*' | b'+' => 1,
        b'0'..=b'9' => {
            let digits = rest.bytes().take(NUMBER_DIGITS_MAX + 1).take_while(u8::is_ascii_digit).count();
            let delimited = matches!(rest.as_bytes().get(digits), Some(b'.' | b')'));
            (digits <= NUMBER_DIGITS_MAX && delimited).then_some(digits + 1)?
        }
        _ => return None,
    };
    let after = &rest[marker..];
    (after.is_empty() || after.starts_with([' ', '\t'])).then_some(after)
}

/// Whether a sign between brackets says that something is done.
pub(crate) fn is_tick(sign: char) -> bool {
    matches!(sign, 'x' | 'X' | '✓' | '✔' | '√' | '✅')
}

/// Where the mark of a checkbox is, whether it has none, and the sign: a space, `x`, `~` for what
/// is being worked on, `-` for what was given up. A star behind it means optional.
fn checkbox(after: &str) -> Option<(usize, bool, char)> {
    let trimmed = after.trim_start_matches([' ', '\t']);
    let inner = trimmed.strip_prefix('[')?;
    let sign = inner.chars().next()?;
    let bare = sign == ']';
    let rest = if bare { inner } else { &inner[sign.len_utf8()..] }.strip_prefix(']')?;
    if !(bare || matches!(sign, ' ' | '~' | '-') || is_tick(sign)) {
        return None;
    }
    let rest = rest.strip_prefix('*').filter(|rest| rest.starts_with([' ', '\t'])).unwrap_or(rest);
    let ends = rest.chars().next().is_none_or(char::is_whitespace);
    (ends && after.len() > trimmed.len()).then_some((after.len() - inner.len(), bare, sign))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tasks(text: &str) -> Vec<String> {
        let source = Source::new(text.as_bytes()).unwrap();
        let blocks = read(&source);
        let shown = |b: &Checkbox<'_>| {
            assert_eq!(&text[b.mark - 1..b.mark], "[");
            format!("{}{} {}@{}", ">".repeat(b.depth), if b.done { "x" } else { "-" }, b.text, b.line + 1)
        };
        blocks.checkboxes.iter().map(shown).collect()
    }

    #[test]
    fn every_kind_of_checkbox() {
        let text = "- [ ] a\n* [x] b\n+ [X] c\n1. [ ] d\n2) [ ] e\n- [] f\n  - [ ] g\n\t- [x] h\n\n  more\n    - [ ] i\n-\t[ ] j\n- [ ]\n";
        assert_eq!(
            tasks(text),
            [
                "- a@1", "x b@2", "x c@3", "- d@4", "- e@5", "- f@6", ">- g@7", ">>x h@8", ">>- i@11",
                "- j@12", "- @13"
            ]
        );
        for none in [
            "-[ ] a",
            "- [y] a",
            "- [x](link)",
            "- [  ] a",
            "[ ] a",
            "    - [ ] code",
            "- a [ ]",
            "> - [ ] a",
        ] {
            assert_eq!(tasks(none), Vec::<String>::new(), "{none}");
        }
    }

    #[test]
    fn nothing_in_code_or_comments_is_a_task() {
        for (text, want) in [
            ("```\n- [ ] a\n```\n- [ ] b\n", vec!["- b@4"]),
            ("~~~ md\n- [ ] a\n```\n~~~\n- [ ] b\n", vec!["- b@5"]),
            ("````\n```\n- [ ] a\n````\n- [ ] b\n", vec!["- b@5"]),
            ("   ```\n- [ ] a\n  ```\n- [ ] b\n", vec!["- b@4"]),
            ("- [ ] a\n      ```\n      - [ ] code\n      ```\n- [ ] b\n", vec!["- a@1", "- b@5"]),
            ("- [ ] a\n```\n- [ ] never closed\n", vec!["- a@1"]),
            ("`` ` ``\n``` a`b\n- [ ] a\n", vec!["- a@3"]),
            ("<!--\n- [ ] a\n-->\n- [ ] b\n", vec!["- b@4"]),
            ("<!-- one line -->\n- [ ] b\n", vec!["- b@2"]),
            ("```\n- [ ] a\n``` no\n- [ ] b\n```\n", vec![]),
        ] {
            assert_eq!(tasks(text), want, "{text}");
        }
    }

    #[test]
    fn headings_and_settings_fences() {
        let text = "## A ##\n####### no\n#no\n   # B\n    # code\n### C#\n#\n```backstop x\na\n~~~\n```\n``` Backstop\n";
        let source = Source::new(text.as_bytes()).unwrap();
        let blocks = read(&source);
        let headings: Vec<_> = blocks.headings.iter().map(|h| (h.line, h.level, h.text)).collect();
        assert_eq!(headings, [(0, 2, "A"), (3, 1, "B"), (5, 3, "C#"), (6, 1, "")]);
        assert_eq!(blocks.settings, [SettingsFence { open: 7, close: Some(10), indent: 0 }]);
        assert_eq!(blocks.unclosed, Some((11, "code fence")));
    }
}
