//! Readers: a module for each format, each from a document to the same [`Draft`].
//!
//! A format is recognised by the document's structure, never by the name of its file: every reader
//! says how sure it is, and the surest one reads. Headings, lists and tables inside code fences are
//! no structure.

mod bmad;
mod claude;
mod conductor;
mod execplan;
mod grouped;
mod headings;
mod json;
mod kiro;
mod list;
pub(crate) mod markdown;
mod openspec;
mod prp;
mod ralph;
mod ralphex;
mod spec_kit;
mod superpowers;
mod task_master;

use super::draft::Draft;
use super::error::{PlanError, PlanErrorKind};
use super::format::Format;
use markdown::Markdown;

/// A file of a plan.
#[derive(Debug, Clone, Copy)]
pub struct PlanText<'t> {
    /// Its name, without folders.
    pub name: &'t str,
    /// Its content.
    pub text: &'t [u8],
}

/// What a format's reader may do: say how sure it is, and read.
struct Reader {
    format: Format,
    /// How sure it is that the document is of its format; 0 for not at all.
    score: fn(&Markdown<'_>) -> u32,
    read: fn(&Markdown<'_>) -> Draft,
}

/// The readers of Markdown documents. Where two are equally sure, the first counts.
const MARKDOWN: &[Reader] = &[
    Reader { format: Format::SpecKit, score: spec_kit::score, read: spec_kit::read },
    Reader { format: Format::Bmad, score: bmad::score, read: bmad::read_story },
    Reader { format: Format::Execplan, score: execplan::score, read: execplan::read },
    Reader { format: Format::Ralphex, score: ralphex::score, read: ralphex::read },
    Reader { format: Format::Superpowers, score: superpowers::score, read: superpowers::read },
    Reader { format: Format::Conductor, score: conductor::score, read: conductor::read },
    Reader { format: Format::Prp, score: prp::score, read: prp::read },
    Reader { format: Format::Openspec, score: openspec::score, read: openspec::read },
    Reader { format: Format::Kiro, score: kiro::score, read: kiro::read },
    Reader { format: Format::Claude, score: claude::score, read: claude::read },
    Reader { format: Format::Headings, score: headings::score, read: headings::read },
    Reader { format: Format::List, score: list::score, read: list::read },
];

/// How sure it is that a table of phases with dependencies and status is the plan: nobody else has
/// one.
pub(crate) const OWN_TABLE_SCORE: u32 = 99;
/// How sure it is that a table of phases is the plan.
pub(crate) const TABLE_SCORE: u32 = 90;
/// The same of a table with other names.
pub(crate) const LOOSE_TABLE_SCORE: u32 = 60;

/// Reads a document that is not in Backstop's own format. `table` is how sure it is that it is;
/// nothing comes back where it is, or where no reader knows the document.
pub(crate) fn read(
    texts: &[PlanText<'_>],
    wanted: Option<Format>,
    table: u32,
) -> Result<Option<Draft>, Vec<PlanError>> {
    let Some(first) = texts.first() else { return Ok(None) };
    if wanted == Some(Format::Backstop) {
        return Ok(None);
    }
    if json::is_json(first.text)
        && wanted.is_none_or(|format| matches!(format, Format::TaskMaster | Format::Ralph))
    {
        return json::read(first.text, wanted).map(Some);
    }
    if let Some(Format::TaskMaster | Format::Ralph) = wanted {
        let kind =
            PlanErrorKind::NotFormat { format: wanted.map_or("", Format::name), expected: "a JSON object" };
        return Err(vec![PlanError::at(1, 1, kind)]);
    }
    if bmad::is_sprint(first.text) && wanted.is_none_or(|format| format == Format::Bmad) {
        return bmad::read_sprint(texts).map(Some);
    }
    let document = Markdown::read(first.text, 0).map_err(|error| vec![error])?;
    let reader = match wanted {
        Some(format) => MARKDOWN.iter().find(|reader| reader.format == format),
        None => {
            let scored = MARKDOWN.iter().map(|reader| ((reader.score)(&document), reader));
            let best = scored.rev().max_by_key(|(score, _)| *score);
            best.filter(|(score, _)| *score > table).map(|(_, reader)| reader)
        }
    };
    let Some(reader) = reader else { return Ok(None) };
    let mut draft = (reader.read)(&document);
    draft.format = reader.format;
    draft.order = document.order_sentences();
    if draft.groups.is_empty() {
        let expected = match reader.format {
            Format::SpecKit => "checkboxes such as `- [ ] T001 description`",
            Format::Kiro => "checkboxes such as `- [ ] 1. description`",
            Format::Openspec => "headings such as `## 1. Name` with checkboxes such as `- [ ] 1.1 step`",
            Format::Superpowers | Format::Ralphex => "headings such as `### Task 1: Name`",
            Format::Conductor => "headings such as `## Phase 1` with `- [ ] Task: …`",
            Format::List => "a checklist or a numbered list",
            _ => "headings or a list of what is to be done",
        };
        let kind = PlanErrorKind::NotFormat { format: reader.format.name(), expected };
        return Err(vec![PlanError::at(1, 1, kind)]);
    }
    settings(&document, &mut draft)?;
    Ok(Some(draft))
}

/// Gives groups the settings blocks in them.
fn settings(document: &Markdown<'_>, draft: &mut Draft) -> Result<(), Vec<PlanError>> {
    if document.blocks.settings.is_empty() {
        return Ok(());
    }
    let starts: Vec<usize> = draft.groups.iter().map(|group| group.entry.line).collect();
    let parts: Vec<std::ops::Range<usize>> = starts
        .iter()
        .enumerate()
        .map(|(at, start)| *start..starts.get(at + 1).copied().unwrap_or(document.source.count()))
        .collect();
    let (defaults, text, own) = document.settings(&parts)?;
    draft.defaults = defaults;
    draft.defaults_text = text;
    for (group, own) in draft.groups.iter_mut().zip(own) {
        group.entry.settings = own.or_else(|| group.entry.settings.take());
    }
    Ok(())
}

/// The folder that a `sprint-status.yaml` names, and the keys of its stories with their ids.
pub(super) type StoryList = (Option<String>, Vec<(String, String)>);

/// The names of the files that may be the story of each key of a `sprint-status.yaml`, and the
/// folder that it names for them; nothing where a text is no such file.
pub fn stories_of(text: &[u8]) -> Option<StoryList> {
    bmad::stories(text)
}
