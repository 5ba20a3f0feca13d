//! Secrets among the arguments of programs that take them in their own way: `curl -u NAME:SECRET`,
//! `mysql -pSECRET`, `sshpass -p SECRET`.

use super::run_within;
use std::ops::Range;

/// How long a command line in a text is.
const COMMAND_BYTES_MAX: usize = 4 << 10;
/// The longest path of a program.
const PROGRAM_BYTES_MAX: usize = 32;

/// How many programs of one command line are looked at: wrappers, and the one that they run.
const PROGRAMS_MAX: usize = 4;

/// How an argument holds its secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// The next word.
    Next,
    /// The rest of the word.
    Joined,
    /// The rest of the word, else the next one.
    Either,
    /// What follows this sign in the rest of the word or in the next one.
    After(u8),
}

/// A flag of these programs, if this word comes first where one is named.
struct Flag {
    programs: &'static [&'static str],
    only: &'static str,
    flag: &'static str,
    form: Form,
}

const fn flag(programs: &'static [&'static str], flag: &'static str, form: Form) -> Flag {
    Flag { programs, only: "", flag, form }
}

const fn flag_of(
    programs: &'static [&'static str],
    only: &'static str,
    flag: &'static str,
    form: Form,
) -> Flag {
    Flag { programs, only, flag, form }
}

const MYSQL: &[&str] = &[
    "mysql",
    "mysqldump",
    "mysqladmin",
    "mysqlimport",
    "mysqlcheck",
    "mysqlshow",
    "mysqlsh",
    "mariadb",
    "mariadb-dump",
    "mariadb-admin",
    "mycli",
];
const ARCHIVES: &[&str] = &["7z", "7za", "7zr", "7zz"];
const REGISTRIES: &[&str] =
    &["docker", "podman", "nerdctl", "helm", "oras", "crane", "skopeo", "az", "buildah"];
const REDIS: &[&str] = &["redis-cli", "valkey-cli"];

const FLAGS: &[Flag] = &[
    flag(&["curl"], "-u", Form::After(b':')),
    flag(&["curl"], "--user", Form::After(b':')),
    flag(&["curl"], "-U", Form::After(b':')),
    flag(&["curl"], "--proxy-user", Form::After(b':')),
    flag(&["curl"], "-b", Form::After(b'=')),
    flag(&["curl"], "--cookie", Form::After(b'=')),
    flag(&["http", "https"], "-a", Form::After(b':')),
    flag(&["http", "https"], "--auth", Form::After(b':')),
    flag(MYSQL, "-p", Form::Joined),
    flag(&["sshpass"], "-p", Form::Either),
    flag(ARCHIVES, "-p", Form::Joined),
    flag(&["rar", "unrar"], "-p", Form::Joined),
    flag(&["rar", "unrar"], "-hp", Form::Joined),
    flag(&["zip", "unzip"], "-P", Form::Either),
    flag(REDIS, "-a", Form::Next),
    flag(REDIS, "--pass", Form::Next),
    flag(
        &["mongo", "mongosh", "mongodump", "mongorestore", "mongoexport", "mongoimport"],
        "-p",
        Form::Either,
    ),
    flag(&["sqlcmd", "bcp"], "-P", Form::Either),
    flag(&["cqlsh", "rabbitmqadmin"], "-p", Form::Either),
    flag(
        &["ldapsearch", "ldapadd", "ldapmodify", "ldapdelete", "ldapwhoami", "ldappasswd"],
        "-w",
        Form::Either,
    ),
    flag(&["smbclient"], "-U", Form::After(b'%')),
    flag_of(REGISTRIES, "login", "-p", Form::Either),
    flag(&["openssl"], "-passin", Form::After(b':')),
    flag(&["openssl"], "-passout", Form::After(b':')),
    flag(&["openssl"], "-pass", Form::After(b':')),
    flag(&["openssl"], "-k", Form::Next),
    flag(&["ipmitool"], "-P", Form::Either),
    flag(&["xfreerdp"], "/p:", Form::Joined),
    flag(&["influx"], "-password", Form::Next),
    flag(&["pscp", "plink", "psftp", "mqtt"], "-pw", Form::Next),
    flag(&["twine"], "-p", Form::Either),
    flag(&["mosquitto_pub", "mosquitto_sub"], "-P", Form::Either),
    flag(&["keytool", "jarsigner"], "-storepass", Form::Next),
    flag(&["keytool", "jarsigner"], "-keypass", Form::Next),
    flag(&["lftp"], "-u", Form::After(b',')),
];

/// Programs in whose arguments a value follows its name as a word of its own.
const SETTERS: &[&str] =
    &["aws", "npm", "git", "yarn", "pnpm", "gcloud", "poetry", "pip", "composer", "vault"];

/// Where the secrets are among the arguments of a command: the number of a word, and a part of it.
pub(in super::super) fn secret_arguments(words: &[&[u8]]) -> Vec<(usize, Range<usize>)> {
    let mut found = Vec::new();
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
            positional(words, at, &mut found);
        }
        if SETTERS.iter().any(is) {
            set_values(words, at, &mut found);
        }
    }
    found.sort_by_key(|(word, range)| (*word, range.start));
    found.dedup();
    found
}

fn is_known(program: &[u8]) -> bool {
    FLAGS.iter().any(|flag| flag.programs.iter().any(|name| name.as_bytes() == program))
        || program == b"htpasswd"
        || SETTERS.iter().any(|name| name.as_bytes() == program)
}

fn basename(word: &[u8]) -> &[u8] {
    memchr::memrchr(b'/', word).map_or(word, |at| &word[at + 1..])
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
            let Some(joined) = word.strip_prefix(flag.flag.as_bytes()) else { continue };
            // `--user=x` is one word; `--user-agent` is another flag.
            let is_long = flag.flag.starts_with("--");
            let start = flag.flag.len() + usize::from(is_long && joined.starts_with(b"="));
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

/// `htpasswd -b FILE USER PASSWORD`.
fn positional(words: &[&[u8]], program_at: usize, found: &mut Vec<(usize, Range<usize>)>) {
    let rest = &words[program_at + 1..];
    let is_batch = rest.iter().any(|word| word.starts_with(b"-") && word.contains(&b'b'));
    if let Some(last) = rest.last().filter(|word| is_batch && rest.len() >= 3 && !word.starts_with(b"-")) {
        found.push((words.len() - 1, 0..last.len()));
    }
}

/// `aws configure set aws_secret_access_key VALUE`.
fn set_values(words: &[&[u8]], program_at: usize, found: &mut Vec<(usize, Range<usize>)>) {
    for at in program_at + 2..words.len() {
        let (before, name) = (words[at - 2], words[at - 1]);
        let value = words[at];
        if matches!(before, b"set" | b"config" | b"--global" | b"--local") && !value.starts_with(b"-") {
            let pair = [name, b"=", value].concat();
            let mut secrets = Vec::new();
            super::find(&pair, &mut secrets);
            if secrets.iter().any(|range| range.start <= name.len() + 1 && range.end > name.len() + 1) {
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
    for (word, range) in secret_arguments(&plain) {
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
fn words(text: &[u8], from: usize) -> (Vec<Range<usize>>, usize) {
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
