//! Secrets that are given to a program on its standard input by the same line of shell:
//! `echo SECRET | sudo -S id`, `docker login --password-stdin <<< SECRET`.

use super::command_line::words;
use super::value::is_placeholder;
use std::ops::Range;

/// How far from the program its input is looked for.
const INPUT_BYTES_MAX: usize = 256;

/// Programs that only print their words.
const PRINTERS: [&[u8]; 2] = [b"echo ", b"printf "];

/// Finds what the program at `at` reads as a secret.
pub(super) fn find(text: &[u8], at: usize, found: &mut Vec<Range<usize>>) {
    let start = at.saturating_sub(INPUT_BYTES_MAX);
    let line = start + memchr::memrchr(b'\n', &text[start..at]).map_or(0, |end| end + 1);
    if let Some(pipe) = memchr::memrchr(b'|', &text[line..at]).map(|pipe| line + pipe)
        && text[line..pipe].last() != Some(&b'|')
    {
        printed(text, line, pipe, found);
    }
    let end = text.len().min(at + INPUT_BYTES_MAX);
    let rest = &text[at..end];
    let rest = &rest[..memchr::memchr2(b'\n', b'|', rest).unwrap_or(rest.len())];
    if let Some(here) = memchr::memmem::find(rest, b"<<<") {
        let (given, _) = words(&text[..at + rest.len()], at + here + 3);
        found.extend(given.into_iter().next().filter(|word| is_secret(&text[word.clone()])));
    }
}

/// What is printed between `line` and a pipe.
fn printed(text: &[u8], line: usize, pipe: usize, found: &mut Vec<Range<usize>>) {
    let before = &text[line..pipe];
    let last = |name: &&[u8]| memchr::memmem::rfind(before, name).map(|at| (at, name.len()));
    let Some((at, length)) = PRINTERS.iter().filter_map(last).max() else { return };
    let is_word = at == 0 || !before[at - 1].is_ascii_alphanumeric();
    // `echo a; cat b |` prints nothing that is known.
    let is_whole = memchr::memchr2(b';', b'&', &before[at..]).is_none();
    if !is_word || !is_whole {
        return;
    }
    let (all, _) = words(&text[..pipe], line + at + length);
    let plain = all.into_iter().filter(|word| is_secret(&text[word.clone()]));
    found.extend(plain);
}

/// Whether a word may be what a program reads as a secret: no flag, no variable, no format.
fn is_secret(word: &[u8]) -> bool {
    !word.starts_with(b"-")
        && !word.starts_with(b"$")
        && !word.starts_with(b"%")
        && !word.starts_with(b"`")
        && !is_placeholder(word)
}
