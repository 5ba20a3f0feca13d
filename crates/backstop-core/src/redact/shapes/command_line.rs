//! Secrets among the arguments of programs that take them in their own way: `curl -u NAME:SECRET`,
//! `mysql -pSECRET`, `sshpass -p SECRET`.

use super::argument_table::{CLUSTERS, FLAGS, Flag, Form, PAIRS, POSITIONALS, SETTERS};
use super::run_within;
use std::ops::Range;

/// How long a command line in a text is.
const COMMAND_BYTES_MAX: usize = 4 << 10;
/// The longest path of a program.
const PROGRAM_BYTES_MAX: usize = 32;

/// How many programs of one command line are looked at: wrappers, and the one that they run.
const PROGRAMS_MAX: usize = 4;

/// Where the secrets are among the arguments of a command: the number of a word, and a part of it.
/// Of `typed` words it is known that they are a command; else they are words of a text.
pub(in super::super) fn secret_arguments(words: &[&[u8]], typed: bool) -> Vec<(usize, Range<usize>)> {
    let mut found = Vec::new();
    if typed {
        headers(words, 0, &mut found);
    }
    let mut programs = 0;
    for (at, word) in words.iter().enumerate() {
        let program = basename(word);
        if !is_known(program) || programs == PROGRAMS_MAX {
            continue;
        }
        programs += 1;
        let is = |name: &&str| name.as_bytes() == program;
        if FLAGS.iter().any(|flag| flag.programs.iter().any(&is)) {
            flags(words, at, program, &mut found);
        }
        if program == b"htpasswd" {
            last_word(words, at, &mut found);
        }
        positional(words, at, program, typed, &mut found);
        if SETTERS.iter().any(is) {
            set_values(words, at, typed, &mut found);
        }
        pairs(words, at, program, &mut found);
        if !typed && (program == b"curl" || program == b"wget") {
            headers(words, at, &mut found);
        }
    }
    found.sort_by_key(|(word, range)| (*word, range.start));
    found.dedup();
    found
}

fn is_known(program: &[u8]) -> bool {
    FLAGS.iter().any(|flag| flag.programs.iter().any(|name| name.as_bytes() == program))
        || program == b"htpasswd"
        || POSITIONALS.iter().any(|one| one.programs.iter().any(|name| name.as_bytes() == program))
        || SETTERS.iter().any(|name| name.as_bytes() == program)
        || PAIRS.iter().any(|one| one.programs.iter().any(|name| name.as_bytes() == program))
}

fn basename(word: &[u8]) -> &[u8] {
    let name = memchr::memrchr2(b'/', b'\\', word).map_or(word, |at| &word[at + 1..]);
    name.strip_suffix(b".exe").unwrap_or(name)
}

fn flags(words: &[&[u8]], program_at: usize, program: &[u8], found: &mut Vec<(usize, Range<usize>)>) {
    let rest = &words[program_at + 1..];
    for flag in FLAGS {
        let is_program = flag.programs.iter().any(|name| name.as_bytes() == program);
        let has_word = flag.only.is_empty() || rest.contains(&flag.only.as_bytes());
        if !is_program || !has_word {
            continue;
        }
        for (n, word) in rest.iter().enumerate() {
            let at = program_at + 1 + n;
            let Some(joined) = behind(flag, program, word) else { continue };
            // `--user=x` is one word; `--user-agent` is another flag.
            let is_long = flag.flag.starts_with("--");
            let start = word.len() - joined.len() + usize::from(is_long && joined.starts_with(b"="));
            if is_long && !joined.is_empty() && !joined.starts_with(b"=") {
                continue;
            }
            let next = words.get(at + 1).filter(|_| joined.is_empty());
            let (place, value, from) = match (flag.form, next) {
                (Form::Joined, _) if joined.is_empty() => continue,
                (Form::Next, None) => continue,
                (_, Some(next)) if flag.form != Form::Joined => (at + 1, *next, 0),
                _ if joined.is_empty() => continue,
                _ => (at, *word, start),
            };
            let from = match flag.form {
                Form::After(sign) => match memchr::memchr(sign, &value[from..]) {
                    Some(sign_at) => from + sign_at + 1,
                    None => continue,
                },
                _ => from,
            };
            if from < value.len() && !super::value::is_placeholder(&value[from..]) {
                found.push((place, from..value.len()));
            }
        }
    }
}

/// What is behind a flag in its word, which may begin with others: `-sSLu`.
fn behind<'w>(flag: &Flag, program: &[u8], word: &'w [u8]) -> Option<&'w [u8]> {
    let name = flag.flag.as_bytes();
    if let Some(joined) = word.strip_prefix(name) {
        return Some(joined);
    }
    let [b'-', letter] = *name else { return None };
    let (_, others) =
        CLUSTERS.iter().find(|(programs, _)| programs.iter().any(|name| name.as_bytes() == program))?;
    let cluster = word.strip_prefix(b"-")?;
    let before = cluster.iter().position(|byte| !others.as_bytes().contains(byte))?;
    (cluster[before] == letter).then(|| &cluster[before + 1..])
}

/// `-H 'X-Api-Key: SECRET'`: what is typed as the value of such a header is one, whatever it looks
/// like.
fn headers(words: &[&[u8]], program_at: usize, found: &mut Vec<(usize, Range<usize>)>) {
    const SCHEMES: [&[u8]; 6] = [b"bearer", b"basic", b"token", b"apikey", b"digest", b"bot"];
    const FLAGS: [&[u8]; 3] = [b"-H", b"--header=", b"--proxy-header="];
    const HEADER_BYTES_MAX: usize = 256;
    for at in program_at + 1..words.len() {
        let word = words[at];
        let is_next = matches!(words[at - 1], b"-H" | b"--header" | b"-header" | b"--proxy-header");
        let joined = FLAGS.iter().find(|flag| word.starts_with(flag));
        let from = match joined {
            Some(flag) => flag.len(),
            None if is_next => 0,
            None => continue,
        };
        let Some(colon) = memchr::memchr(b':', &word[from..]).filter(|at| *at < HEADER_BYTES_MAX) else {
            continue;
        };
        let name = &word[from..from + colon];
        let mut value = from + colon + 1;
        value += super::run(&word[value..], |byte| byte == b' ');
        let scheme = super::run(&word[value..], |byte| byte.is_ascii_alphabetic());
        let is_scheme = SCHEMES.iter().any(|one| one.eq_ignore_ascii_case(&word[value..value + scheme]));
        if is_scheme && word.get(value + scheme) == Some(&b' ') {
            value += scheme + 1;
        }
        let secret = &word[value..];
        if !secret.is_empty()
            && !super::value::is_placeholder(secret)
            && super::announces(&[name, b": "].concat())
        {
            found.push((at, value..word.len()));
        }
    }
}

/// `fly secrets set NAME=SECRET`.
fn pairs(words: &[&[u8]], program_at: usize, program: &[u8], found: &mut Vec<(usize, Range<usize>)>) {
    for one in PAIRS.iter().filter(|one| one.programs.iter().any(|name| name.as_bytes() == program)) {
        let rest = &words[program_at + 1..];
        let fits = |at: &[&[u8]]| at.iter().zip(one.after).all(|(word, wanted)| *word == wanted.as_bytes());
        let Some(start) = rest.windows(one.after.len()).position(fits) else { continue };
        for (at, word) in words.iter().enumerate().skip(program_at + 1 + start + one.after.len()) {
            if let Some(equals) = memchr::memchr(b'=', word).filter(|_| !word.starts_with(b"-"))
                && equals + 1 < word.len()
                && !word[equals + 1..].starts_with(b"@")
                && !super::value::is_placeholder(&word[equals + 1..])
            {
                found.push((at, equals + 1..word.len()));
            }
        }
    }
}

/// `htpasswd -b FILE USER PASSWORD`.
fn last_word(words: &[&[u8]], program_at: usize, found: &mut Vec<(usize, Range<usize>)>) {
    let rest = &words[program_at + 1..];
    let is_batch = rest.iter().any(|word| word.starts_with(b"-") && word.contains(&b'b'));
    if let Some(last) = rest.last().filter(|word| is_batch && rest.len() >= 3 && !word.starts_with(b"-")) {
        found.push((words.len() - 1, 0..last.len()));
    }
}

/// `vault login SECRET`.
fn positional(
    words: &[&[u8]],
    program_at: usize,
    program: &[u8],
    typed: bool,
    found: &mut Vec<(usize, Range<usize>)>,
) {
    let of_program = |names: &[&str]| names.iter().any(|name| name.as_bytes() == program);
    for one in POSITIONALS.iter().filter(|one| of_program(one.programs)) {
        let plain: Vec<usize> =
            (program_at + 1..words.len()).filter(|at| !words[*at].starts_with(b"-")).collect();
        let fits = |at: &[usize]| at.iter().zip(one.after).all(|(at, word)| words[*at] == word.as_bytes());
        let place = match one.after {
            [] => Some(0),
            after => plain.windows(after.len()).position(fits).map(|start| start + after.len()),
        };
        let is_named =
            |place: usize| plain.get(place).is_some_and(|at| words[*at].starts_with(one.named.as_bytes()));
        let has_flag = one.with.is_empty() || words.contains(&one.with.as_bytes());
        let place = place.filter(|place| has_flag && (one.named.is_empty() || is_named(*place)));
        let Some(at) = place.and_then(|place| plain.get(place + one.nth).copied()) else { continue };
        let value = words[at];
        let (start, end) = match one.sign {
            // A name and its value are found by the name.
            None if memchr::memchr(b'=', value).is_some() => continue,
            None => (0, value.len()),
            Some(sign) => match memchr::memchr(sign, value) {
                Some(sign) => (sign + 1, memchr::memrchr(b'@', value).unwrap_or(value.len())),
                None => continue,
            },
        };
        // In a text, `vault login page` is a sentence.
        let Some(secret) = value.get(start..end).filter(|secret| typed || is_like_a_secret(secret)) else {
            continue;
        };
        if !secret.is_empty() && !super::value::is_placeholder(secret) {
            found.push((at, start..end));
        }
    }
}

/// Whether a word of a text is long enough and mixed enough to be a secret.
fn is_like_a_secret(word: &[u8]) -> bool {
    const BYTES_MIN: usize = 8;
    word.len() >= BYTES_MIN && word.iter().any(u8::is_ascii_digit) && word.iter().any(u8::is_ascii_alphabetic)
}

/// `aws configure set aws_secret_access_key VALUE`.
fn set_values(words: &[&[u8]], program_at: usize, typed: bool, found: &mut Vec<(usize, Range<usize>)>) {
    let program = basename(words[program_at]);
    // What is typed behind such a name is a secret whatever it looks like.
    let is_typed =
        |name: &[u8], value: &[u8]| typed && value.len() >= 6 && super::announces(&[name, b"="].concat());
    for at in program_at + 2..words.len() {
        let (before, name) = (words[at - 2], words[at - 1]);
        let value = words[at];
        let is_set = matches!(before, b"set" | b"config" | b"--global" | b"--local" | b"setenv")
            || matches!(program, b"rclone" | b"setx" | b"setenv");
        if is_set && !value.starts_with(b"-") && !super::value::is_placeholder(value) {
            let pair = [name, b"=", value].concat();
            let mut secrets = Vec::new();
            super::find(&pair, &mut secrets);
            let is_found =
                secrets.iter().any(|range| range.start <= name.len() + 1 && range.end > name.len() + 1);
            if is_found || is_typed(name, value) {
                found.push((at, 0..value.len()));
            }
        }
    }
}

/// Finds secrets in the command line that begins with the program at `at`; gives where it ends.
pub(super) fn find(text: &[u8], at: usize, found: &mut Vec<Range<usize>>) -> usize {
    let is_boundary = |byte: u8| !byte.is_ascii_alphanumeric() && !matches!(byte, b'_' | b'-' | b'.');
    let length = run_within(&text[at..], PROGRAM_BYTES_MAX, |byte| !byte.is_ascii_whitespace());
    let is_command = (at == 0 || is_boundary(text[at - 1])) && text.get(at + length) == Some(&b' ');
    let program = &text[at..at + length];
    if !is_command || !is_known(program) {
        return at;
    }
    let text = &text[..quoted_until(text, at)];
    let (words, end) = words(text, at);
    let plain: Vec<&[u8]> = words.iter().map(|range| &text[range.clone()]).collect();
    for (word, range) in secret_arguments(&plain, false) {
        let start = words[word].start;
        found.push(start + range.start..start + range.end);
    }
    end
}

/// Where a command ends that stands in quotes, as a string of JSON does: at the next one of these.
/// Without quotes, at the end of the text.
fn quoted_until(text: &[u8], at: usize) -> usize {
    let quote = at.checked_sub(1).map(|before| text[before]).filter(|byte| matches!(byte, b'"' | b'\''));
    let Some(quote) = quote else { return text.len() };
    let limit = text.len().min(at + COMMAND_BYTES_MAX);
    let is_end = |&end: &usize| text[end] == quote && text[end - 1] != b'\\';
    (at..limit).find(is_end).unwrap_or(text.len())
}

/// The words of a command line, without their quotes, and where it ends.
pub(super) fn words(text: &[u8], from: usize) -> (Vec<Range<usize>>, usize) {
    let limit = text.len().min(from + COMMAND_BYTES_MAX);
    let mut words = Vec::new();
    let mut at = from;
    while at < limit {
        match text[at] {
            b' ' | b'\t' => at += 1,
            b'\n' | b';' | b'|' | b'&' => break,
            quote @ (b'"' | b'\'') => {
                let inner = at
                    + 1
                    + run_within(&text[at + 1..limit], COMMAND_BYTES_MAX, |b| b != quote && b != b'\n');
                words.push(at + 1..inner);
                at = inner + 1;
            }
            _ => {
                let is_in =
                    |b: u8| !b.is_ascii_whitespace() && !matches!(b, b';' | b'|' | b'"' | b'\'' | b'`');
                let end = at + run_within(&text[at..limit], COMMAND_BYTES_MAX, is_in);
                let quoted = text.get(end).copied().filter(|b| matches!(b, b'"' | b'\''));
                // `-p'secret'` is one word.
                let close = quoted.and_then(|quote| {
                    let inner =
                        run_within(&text[end + 1..limit], COMMAND_BYTES_MAX, |b| b != quote && b != b'\n');
                    (text.get(end + 1 + inner) == Some(&quote)).then_some(end + 1 + inner)
                });
                match close {
                    Some(close) if end > at => {
                        words.push(at..close);
                        at = close + 1;
                    }
                    _ if end == at => at += 1,
                    _ => {
                        words.push(at..end);
                        at = end;
                    }
                }
            }
        }
    }
    (words, at.max(from + 1))
}
