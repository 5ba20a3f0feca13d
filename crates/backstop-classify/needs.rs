//! What a line must hold for a regex to match on it: literals that can be looked for before the
//! regex is built.
//!
//! What cannot be said for certain is left out, so that a line without what is needed never
//! matches.

use regex_syntax::ParserBuilder;
use regex_syntax::hir::literal::{ExtractKind, Extractor};
use regex_syntax::hir::{Class, Hir, HirKind, Look};
use std::collections::BTreeSet;

/// How many texts are followed side by side.
const TEXTS_MAX: usize = 16;
/// How many bytes a class may have, whatever their case.
const CLASS_BYTES_MAX: usize = 4;
/// A shorter text tells too little, unless it is known where it stands.
const TEXT_BYTES_MIN: usize = 2;
/// How much of a repeated text is looked for.
const REPEATED_BYTES_MAX: usize = 32;
/// With how many texts a line may begin or end, and how much of each is looked at.
const ENDS_MAX: usize = 64;
const END_BYTES_MAX: usize = 16;

/// What is needed, as `pattern.rs` reads it: a byte for the kind, two for the length, and then
/// texts or needs.
#[derive(Clone)]
enum Need {
    All(Vec<Need>),
    Any(Vec<Need>),
    Text(Vec<u8>),
    /// A text in lower case, which may stand there in any.
    Folded(Vec<u8>),
    Begins(Vec<u8>),
    Ends(Vec<u8>),
}

/// Everything that a part of a regex can match, where that is a handful of texts.
#[derive(Clone)]
struct Texts {
    folded: bool,
    texts: BTreeSet<Vec<u8>>,
}

/// What a part of a regex needs. `None` is nothing.
struct Part {
    exact: Option<Texts>,
    need: Option<Need>,
}

/// What a regex needs, as the matcher builds it; empty where that is nothing.
pub(crate) fn of(pattern: &str) -> Vec<u8> {
    let mut parser = ParserBuilder::new().unicode(false).utf8(false).build();
    let hir = parser.parse(pattern).expect("the pack was checked");
    whole(&hir).map(|need| need.code()).unwrap_or_default()
}

impl Need {
    fn code(&self) -> Vec<u8> {
        let nested = |needs: &Vec<Self>| needs.iter().flat_map(Self::code).collect();
        let (kind, body) = match self {
            Self::All(needs) => (b'&', nested(needs)),
            Self::Any(needs) => (b'|', nested(needs)),
            Self::Text(text) => (b'=', text.clone()),
            Self::Folded(text) => (b'~', text.clone()),
            Self::Begins(text) => (b'^', text.clone()),
            Self::Ends(text) => (b'$', text.clone()),
        };
        let length = u16::try_from(body.len()).expect("a need is short");
        [&[kind][..], &length.to_le_bytes(), &body].concat()
    }
}

fn all(needs: Vec<Need>) -> Option<Need> {
    if needs.len() < 2 { needs.into_iter().next() } else { Some(Need::All(needs)) }
}

fn any(needs: Vec<Need>) -> Option<Need> {
    if needs.len() < 2 { needs.into_iter().next() } else { Some(Need::Any(needs)) }
}

impl Texts {
    fn one(text: &[u8]) -> Self {
        Self { folded: false, texts: BTreeSet::from([text.to_vec()]) }
    }

    fn folded(self, folded: bool) -> Self {
        let fold = |text: Vec<u8>| if folded { text.to_ascii_lowercase() } else { text };
        Self { folded, texts: self.texts.into_iter().map(fold).collect() }
    }

    fn then(self, next: Self) -> Self {
        let folded = self.folded || next.folded;
        let (first, next) = (self.folded(folded), next.folded(folded));
        let joined = first.texts.iter().flat_map(|a| next.texts.iter().map(move |b| [&a[..], b].concat()));
        Self { folded, texts: joined.collect() }
    }

    fn or(self, other: Self) -> Self {
        let folded = self.folded || other.folded;
        let (mut texts, other) = (self.folded(folded), other.folded(folded));
        texts.texts.extend(other.texts);
        texts
    }

    fn need(self) -> Option<Need> {
        if self.texts.iter().any(|text| text.len() < TEXT_BYTES_MIN) {
            return None;
        }
        any(self.texts.into_iter().map(if self.folded { Need::Folded } else { Need::Text }).collect())
    }
}

impl Part {
    fn nothing() -> Self {
        Self { exact: None, need: None }
    }

    fn texts(texts: Texts) -> Self {
        Self { exact: Some(texts), need: None }
    }

    fn into_need(self) -> Option<Need> {
        match self.exact {
            Some(texts) => texts.need(),
            None => self.need,
        }
    }
}

/// What a whole regex needs: of several branches, each may stand at an end of the line.
fn whole(hir: &Hir) -> Option<Need> {
    match hir.kind() {
        HirKind::Capture(capture) => whole(&capture.sub),
        HirKind::Alternation(branches) => any(branches.iter().map(whole).collect::<Option<_>>()?),
        _ => {
            let properties = hir.properties();
            let begins = properties.look_set_prefix().contains(Look::Start);
            let ends = properties.look_set_suffix().contains(Look::End);
            let mut needs = Vec::new();
            needs.extend(begins.then(|| at_end(hir, ExtractKind::Prefix, Need::Begins)).flatten());
            needs.extend(ends.then(|| at_end(hir, ExtractKind::Suffix, Need::Ends)).flatten());
            needs.extend(part(hir).into_need());
            all(needs)
        }
    }
}

/// The texts with which every match begins or ends.
fn at_end(hir: &Hir, kind: ExtractKind, need: fn(Vec<u8>) -> Need) -> Option<Need> {
    let texts =
        Extractor::new().kind(kind).limit_total(ENDS_MAX).limit_literal_len(END_BYTES_MAX).extract(hir);
    if texts.min_literal_len()? == 0 {
        return None;
    }
    let texts: BTreeSet<Vec<u8>> = texts.literals()?.iter().map(|text| text.as_bytes().to_vec()).collect();
    any(texts.into_iter().map(need).collect())
}

fn part(hir: &Hir) -> Part {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => Part::texts(Texts::one(b"")),
        HirKind::Literal(literal) => Part::texts(Texts::one(&literal.0)),
        HirKind::Class(class) => class_texts(class).map_or_else(Part::nothing, Part::texts),
        HirKind::Capture(capture) => part(&capture.sub),
        HirKind::Repetition(repeated) => repetition(part(&repeated.sub), repeated.min, repeated.max),
        HirKind::Concat(parts) => concatenated(parts.iter().map(part)),
        HirKind::Alternation(parts) => either(parts.iter().map(part).collect()),
    }
}

/// One text for each byte of a small class.
fn class_texts(class: &Class) -> Option<Texts> {
    let bytes: Vec<u8> = match class {
        Class::Bytes(class) => class.ranges().iter().flat_map(|range| range.start()..=range.end()).collect(),
        // One of these may be several bytes.
        Class::Unicode(class) => {
            let chars = class.ranges().iter().flat_map(|range| range.start()..=range.end());
            chars.map(|c| u8::try_from(c).ok().filter(u8::is_ascii)).take(256).collect::<Option<_>>()?
        }
    };
    let other_case = |byte: u8| {
        if byte.is_ascii_lowercase() { byte.to_ascii_uppercase() } else { byte.to_ascii_lowercase() }
    };
    let folded = bytes.iter().any(u8::is_ascii_alphabetic)
        && bytes.iter().all(|byte| bytes.contains(&other_case(*byte)));
    let texts =
        Texts { folded: false, texts: bytes.into_iter().map(|byte| vec![byte]).collect() }.folded(folded);
    (1..=CLASS_BYTES_MAX).contains(&texts.texts.len()).then_some(texts)
}

fn repetition(part: Part, min: u32, max: Option<u32>) -> Part {
    match (min, part.exact) {
        (0, Some(texts)) if max == Some(1) && texts.texts.len() < TEXTS_MAX => {
            Part::texts(texts.or(Texts::one(b"")))
        }
        (0, _) => Part::nothing(),
        (min, Some(texts)) => {
            let length: usize = texts.texts.iter().map(Vec::len).sum();
            let times = if texts.texts.len() == 1 {
                (REPEATED_BYTES_MAX / length.max(1)).min(min as usize)
            } else {
                1
            };
            let repeated = texts.texts.into_iter().map(|text| text.repeat(times.max(1))).collect();
            let texts = Texts { folded: texts.folded, texts: repeated };
            Part { exact: None, need: texts.need() }
        }
        (_, None) => Part { exact: None, need: part.need },
    }
}

fn concatenated(parts: impl Iterator<Item = Part>) -> Part {
    let mut texts = Texts::one(b"");
    let mut needs = Vec::new();
    let mut whole = true;
    for part in parts {
        needs.extend(part.need);
        match part.exact {
            Some(next) if texts.texts.len() * next.texts.len() <= TEXTS_MAX => texts = texts.then(next),
            next => {
                whole = false;
                needs.extend(std::mem::replace(&mut texts, next.unwrap_or_else(|| Texts::one(b""))).need());
            }
        }
    }
    if whole {
        return Part::texts(texts);
    }
    needs.extend(texts.need());
    Part { exact: None, need: all(needs) }
}

fn either(parts: Vec<Part>) -> Part {
    let exact: Option<Vec<Texts>> = parts.iter().map(|part| part.exact.clone()).collect();
    let exact = exact.and_then(|texts| texts.into_iter().reduce(Texts::or));
    if let Some(texts) = exact.filter(|texts| texts.texts.len() <= TEXTS_MAX) {
        return Part::texts(texts);
    }
    let needs: Option<Vec<Need>> = parts.into_iter().map(Part::into_need).collect();
    Part { exact: None, need: needs.and_then(any) }
}
