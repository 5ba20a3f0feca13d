//! Sets or removes one key in a configuration file: the text of the file goes in, the changed text
//! comes out. Comments, order and white space stay as they are.
//!
//! It must not write anything: the caller does.

use super::error::{ConfigError, Place, Problem};
use super::file;
use super::find::{self, FileName, PROJECT_FILE, Surroundings, repository_root, user_file_path};
use super::keys::{self, Key, KeyMatch, ValueKind, YES_OR_NO};
use super::show;
use super::value::{self, Written};
use toml_edit::{Array, DocumentMut, Item, Table, TableLike, Value};

/// Which file is changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EditScope {
    /// The project's file.
    Project,
    /// The user's file.
    User,
}

/// A changed file, not written yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// The file. It and its folder may not exist yet.
    pub file: FileName,
    /// The value that the file had, as text; `None` if it did not set the key.
    pub before: Option<String>,
    /// The value that it has now, as text; `None` if it does not set the key any more.
    pub after: Option<String>,
    /// The whole text of the file.
    pub text: String,
    /// Whether the file existed.
    pub existed: bool,
    /// Whether the file sets a key that needs trust, so that a changed one has to be trusted again.
    pub needs_trust: bool,
}

/// The key with this name; an error with the nearest one otherwise.
pub(crate) fn known(name: &str) -> Result<&'static Key, ConfigError> {
    let path: Vec<&str> = name.split('.').collect();
    let wrong =
        |message: &str, hint: &str| ConfigError::one(Problem::new(Place::Nowhere, message, Some(hint)));
    match keys::find(&path) {
        KeyMatch::Key(key) => Ok(key),
        KeyMatch::Section => {
            let hint = "`backstop config show` lists every key with its value";
            Err(wrong(&format!("`{name}` is a section: name a key in it"), hint))
        }
        KeyMatch::Unknown => {
            let section = (0..path.len()).rev().find(|n| keys::find(&path[..*n]) == KeyMatch::Section);
            let section = section.unwrap_or(0);
            let (message, hint) = keys::unknown(&path[..section], path.get(section).unwrap_or(&""));
            Err(wrong(&message, &hint))
        }
    }
}

/// Sets a key in the file of this scope. A list is given as several values.
pub fn edit(
    around: &Surroundings<'_>,
    scope: EditScope,
    name: &str,
    values: &[String],
) -> Result<Edit, ConfigError> {
    let key = known(name)?;
    let new = toml_value(key, name, values)?;
    let (file, source) = source(around, scope)?;
    let original = source.as_deref().unwrap_or_default();
    let (entries, problems) = file::read(&file, original.trim_start_matches(BOM));
    let before = entries.into_iter().find(|entry| entry.name == name).map(|entry| entry.written);
    let mut document: DocumentMut = original.trim_start_matches(BOM).parse().map_err(|_| {
        ConfigError::of(problems.clone()).unwrap_or_else(|| {
            ConfigError::one(Problem::new(Place::File(file.clone()), "not TOML", Some("correct it first")))
        })
    })?;
    // The key is set in the text as it will be read, and nothing else is made worse.
    let check = |text: &str| {
        let (entries, now) = file::read(&file, text.trim_start_matches(BOM));
        let after = entries.iter().find(|entry| entry.name == name).map(|entry| entry.written.clone());
        after.filter(|_| now.len() <= problems.len()).map(|after| (entries, after))
    };
    let path: Vec<&str> = name.split('.').collect();
    let (section, leaf) = path.split_at(path.len() - 1);
    let appended = if has_section(document.as_table(), section) {
        None
    } else {
        let text = with_section(original, section, leaf[0], &new);
        check(&text).map(|checked| (text, checked))
    };
    let (text, (entries, after)) = match appended {
        Some(done) => done,
        None => {
            put(document.as_table_mut(), &path, new).map_err(|section| {
                let message = format!("`{section}` is not a section in this file, so `{name}` cannot be set");
                let hint = Some("correct it there first");
                ConfigError::one(Problem::new(Place::File(file.clone()), &message, hint))
            })?;
            let text = with_line_ends(original, document.to_string());
            let done = text.and_then(|text| check(&text).map(|checked| (text, checked)));
            done.ok_or_else(|| {
                let message = format!("`{name}` cannot be set in this file by a command");
                let hint = Some("edit the file by hand");
                ConfigError::one(Problem::new(Place::File(file.clone()), &message, hint))
            })?
        }
    };
    let shown = |written: &Written| show::shown(name, written).text;
    Ok(Edit {
        before: before.as_ref().map(shown),
        after: Some(shown(&after)),
        existed: source.is_some(),
        needs_trust: scope == EditScope::Project && entries.iter().any(|entry| entry.key.needs_trust()),
        file,
        text,
    })
}

/// Removes a key from the file of this scope. A file that does not set it stays as it is.
pub fn unset(around: &Surroundings<'_>, scope: EditScope, name: &str) -> Result<Edit, ConfigError> {
    known(name)?;
    let (file, source) = source(around, scope)?;
    let original = source.clone().unwrap_or_default();
    let (entries, problems) = file::read(&file, original.trim_start_matches(BOM));
    let before = entries.iter().find(|entry| entry.name == name).map(|entry| entry.written.clone());
    let needs_trust = |entries: &[file::Entry]| {
        scope == EditScope::Project && entries.iter().any(|entry| entry.key.needs_trust())
    };
    let Some(before) = before else {
        return Ok(Edit {
            before: None,
            after: None,
            existed: source.is_some(),
            needs_trust: needs_trust(&entries),
            file,
            text: original,
        });
    };
    let by_hand = || {
        let message = format!("`{name}` cannot be removed from this file by a command");
        ConfigError::one(Problem::new(Place::File(file.clone()), &message, Some("edit the file by hand")))
    };
    let mut document: DocumentMut = original
        .trim_start_matches(BOM)
        .parse()
        .map_err(|_| ConfigError::of(problems.clone()).unwrap_or_else(by_hand))?;
    let path: Vec<&str> = name.split('.').collect();
    remove(document.as_table_mut(), &path).ok_or_else(by_hand)?;
    let text = with_line_ends(&original, document.to_string()).ok_or_else(by_hand)?;
    let (entries, now) = file::read(&file, text.trim_start_matches(BOM));
    if entries.iter().any(|entry| entry.name == name) || now.len() > problems.len() {
        return Err(by_hand());
    }
    Ok(Edit {
        before: Some(show::shown(name, &before).text),
        after: None,
        existed: true,
        needs_trust: needs_trust(&entries),
        file,
        text,
    })
}

/// Removes what is at a path; nothing where nothing is.
fn remove(table: &mut dyn TableLike, path: &[&str]) -> Option<Item> {
    let (first, rest) = path.split_first()?;
    match rest.is_empty() {
        true => table.remove(first),
        false => remove(table.get_mut(first)?.as_table_like_mut()?, rest),
    }
}

/// The byte order mark that some editors write. It stays in the file.
const BOM: char = '\u{feff}';

fn has_section(table: &dyn TableLike, path: &[&str]) -> bool {
    let Some((first, rest)) = path.split_first() else { return true };
    match table.get(first) {
        Some(item) => item.as_table_like().is_none_or(|inner| has_section(inner, rest)),
        None => false,
    }
}

/// The text with a new section at its end. Nothing before it changes.
fn with_section(original: &str, section: &[&str], key: &str, new: &Value) -> String {
    let newline = if original.contains("\r\n") { "\r\n" } else { "\n" };
    let mut text = original.to_owned();
    if !text.trim_start_matches(BOM).is_empty() {
        text.push_str(if text.ends_with('\n') { "" } else { newline });
        text.push_str(newline);
    }
    text.push_str(&format!("[{}]{newline}{key} = {}{newline}", section.join("."), new.to_string().trim()));
    text
}

/// The text with the line ends and the byte order mark of the original, which the editor of TOML
/// does not keep. `None` where the original has both kinds of line ends.
fn with_line_ends(original: &str, text: String) -> Option<String> {
    let (all, dos) = (original.matches('\n').count(), original.matches("\r\n").count());
    let text = match dos {
        0 => text,
        dos if dos == all => text.replace("\r\n", "\n").replace('\n', "\r\n"),
        _ => return None,
    };
    Some(if original.starts_with(BOM) && !text.starts_with(BOM) { format!("{BOM}{text}") } else { text })
}

/// The file of a scope and its text; `None` for a file that is to be made.
fn source(around: &Surroundings<'_>, scope: EditScope) -> Result<(FileName, Option<String>), ConfigError> {
    let text = |file: &FileName, bytes: Vec<u8>| -> Result<String, ConfigError> {
        file::text(file, &bytes).map_err(ConfigError::one)?;
        // With its byte order mark, if it has one.
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    match scope {
        EditScope::User => {
            let Some(path) = user_file_path(around) else {
                let hint = Some("set HOME, or set the key in the project's file");
                return Err(ConfigError::one(Problem::new(Place::Nowhere, "HOME is not set", hint)));
            };
            let file = FileName::new(path, &around.cwd);
            let read = find::bytes(&file, &file.path).map_err(ConfigError::one)?;
            let source = read.map(|(bytes, _)| text(&file, bytes)).transpose()?;
            Ok((file, source))
        }
        EditScope::Project => match find::project_file(around, &super::layers::safe_directories(around))
            .map_err(|unread| ConfigError::one(Problem::from(unread)))?
        {
            Some(project) => {
                let source = text(&project.file, project.bytes)?;
                Ok((project.file, Some(source)))
            }
            None => {
                let root = repository_root(&around.cwd, around.home.as_deref());
                let path = root.unwrap_or_else(|| around.cwd.clone()).join(PROJECT_FILE);
                Ok((FileName::new(path, &around.cwd), None))
            }
        },
    }
}

/// The value as it is written in a file, checked.
fn toml_value(key: &Key, name: &str, values: &[String]) -> Result<Value, ConfigError> {
    let wrong = |wrong: value::Wrong| {
        ConfigError::one(Problem::new(Place::Nowhere, &wrong.message, wrong.hint.as_deref()))
    };
    let parsed: Vec<Written> = values
        .iter()
        .map(|given| value::from_text(key, name, given).map_err(wrong))
        .collect::<Result<_, _>>()?;
    if key.is_list() {
        return Ok(Value::Array(values.iter().map(String::as_str).collect::<Array>()));
    }
    let [one] = parsed.as_slice() else {
        let message = format!("`{name}` has one value, {} were given", values.len());
        let hint = "quote a value with spaces in it";
        return Err(ConfigError::one(Problem::new(Place::Nowhere, &message, Some(hint))));
    };
    let number = one.text.parse::<i64>().ok();
    Ok(match (&key.kind, number) {
        (ValueKind::Count { .. } | ValueKind::Duration { .. }, Some(number)) => number.into(),
        (ValueKind::OneOf(words), _) if *words == YES_OR_NO => (one.text == "true").into(),
        _ => one.text.as_str().into(),
    })
}

/// Puts a value at a path, with the white space and comment of the one that it replaces. The error
/// is the name of what should be a section and is not.
fn put(table: &mut dyn TableLike, path: &[&str], mut new: Value) -> Result<(), String> {
    let [first, rest @ ..] = path else { return Ok(()) };
    if rest.is_empty() {
        if let Some(old) = table.get(first).and_then(Item::as_value) {
            *new.decor_mut() = old.decor().clone();
        }
        match table.get_mut(first) {
            Some(item) => *item = Item::Value(new),
            None => {
                table.insert(first, Item::Value(new));
            }
        }
        return Ok(());
    }
    if table.get(first).is_none() {
        let mut section = Table::new();
        // `[profile.command]` needs no `[profile]` above it.
        section.set_implicit(true);
        table.insert(first, Item::Table(section));
    }
    match table.get_mut(first).and_then(Item::as_table_like_mut) {
        Some(section) => put(section, rest, new),
        None => Err((*first).to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::scratch::Scratch;
    use super::*;

    fn set(scratch: &Scratch, name: &str, values: &[&str]) -> Result<Edit, String> {
        let values: Vec<String> = values.iter().map(ToString::to_string).collect();
        edit(&scratch.around(""), EditScope::Project, name, &values).map_err(|error| error.to_string())
    }

    #[test]
    fn comments_and_layout_stay() {
        let scratch = Scratch::new();
        let file = "# ours\r\n[exec] # limits\r\ntimeout   =  \"5m\"   # one attempt\r\n\r\n[log]\r\nformat = 'json'\r\n";
        scratch.write("backstop.toml", file);
        let done = set(&scratch, "exec.timeout", &["90"]).unwrap();
        assert_eq!(done.text, file.replace("\"5m\"", "90"));
        assert_eq!((done.before.as_deref(), done.after.as_deref()), (Some("5m"), Some("90")));
        let done = set(&scratch, "exec.idle", &["2m"]).unwrap();
        assert!(
            done.text.starts_with(
                "# ours\r\n[exec] # limits\r\ntimeout   =  \"5m\"   # one attempt\r\nidle = \"2m\""
            ),
            "{:?}",
            done.text
        );
        assert!(done.text.ends_with("\r\n[log]\r\nformat = 'json'\r\n"), "{:?}", done.text);
        assert_eq!(done.before, None);
    }

    #[test]
    fn a_key_is_removed_and_the_rest_stays() {
        let scratch = Scratch::new();
        for (file, want) in [
            ("# ours\n[exec] # limits\ntimeout = 1 # a\nidle = 2\n", "# ours\n[exec] # limits\nidle = 2\n"),
            ("exec.timeout = 1\nexec.idle = 2\n", "exec.idle = 2\n"),
            ("exec = { timeout = 1, idle = 2 }\n", "exec = { idle = 2 }\n"),
            (
                "[exec]\r\ntimeout = 1\r\n\r\n[log]\r\nformat = 'json'\r\n",
                "[exec]\r\n\r\n[log]\r\nformat = 'json'\r\n",
            ),
            ("[log]\nformat = 'json'\n", "[log]\nformat = 'json'\n"),
        ] {
            scratch.write("backstop.toml", file);
            let done = unset(&scratch.around(""), EditScope::Project, "exec.timeout").unwrap();
            assert_eq!(done.text, want, "{file}");
            assert_eq!((done.before.is_some(), done.after.as_deref()), (file.contains("timeout"), None));
        }
        let unknown = unset(&scratch.around(""), EditScope::Project, "exec.timout").unwrap_err();
        assert!(unknown.to_string().contains("unknown key `exec.timout`"), "{unknown}");
    }

    #[test]
    fn every_way_to_write_a_key_is_found() {
        let scratch = Scratch::new();
        for (file, want) in [
            ("exec.timeout = 1 # a\n", "exec.timeout = 7 # a\n"),
            ("exec = { timeout = 1, idle = 2 } # a\n", "exec = { timeout = 7, idle = 2 } # a\n"),
            ("[exec]\n'timeout' = 1\n", "[exec]\n'timeout' = 7\n"),
            ("# alone\n", "# alone\n\n[exec]\ntimeout = 7\n"),
            ("[log]\n# end", "[log]\n# end\n\n[exec]\ntimeout = 7\n"),
            ("exec.idle = 1\n# end\n", "exec.idle = 1\nexec.timeout = 7\n# end\n"),
            ("\u{feff}exec.timeout = 1\n", "\u{feff}exec.timeout = 7\n"),
            ("", "[exec]\ntimeout = 7\n"),
        ] {
            scratch.write("backstop.toml", file);
            let text = set(&scratch, "exec.timeout", &["7"]).unwrap().text;
            assert_eq!(text, want, "{file}");
        }
    }

    #[test]
    fn types_are_written_as_they_are_read() {
        let scratch = Scratch::new();
        for (name, values, line) in [
            ("profile.command.attempts", &["5"][..], "[profile.command]\nattempts = 5\n"),
            ("profile.command.learn", &["true"], "[profile.command]\nlearn = true\n"),
            ("profile.command.on.timeout", &["retry:5"], "[profile.command.on]\ntimeout = \"retry:5\"\n"),
            ("redact.env", &["A", "B"], "[redact]\nenv = [\"A\", \"B\"]\n"),
            (
                "gates.lint.check",
                &["npm", "run", "lint"],
                "[gates.lint]\ncheck = [\"npm\", \"run\", \"lint\"]\n",
            ),
            ("store.max", &["2GB"], "[store]\nmax = \"2GB\"\n"),
            ("exec.timeout", &["none"], "[exec]\ntimeout = \"none\"\n"),
            ("exec.timeout", &["0.5"], "[exec]\ntimeout = \"0.5\"\n"),
        ] {
            let done = set(&scratch, name, values).unwrap();
            assert_eq!(done.text, line, "{name}");
            assert_eq!(done.needs_trust, keys::named(name).unwrap().needs_trust(), "{name}");
            assert!(!done.existed);
        }
    }

    #[test]
    fn mistakes_change_nothing_and_are_explained() {
        let scratch = Scratch::new();
        for (name, values, says) in [
            ("exec.timout", &["5"][..], "unknown key `exec.timout`"),
            ("exec", &["5"], "`exec` is a section"),
            ("exec.timeout", &["soon"], "`soon` is not a duration"),
            ("exec.timeout", &["1", "2"], "has one value, 2 were given"),
            ("plan.jobs", &["many"], "is a number from 1 to 64"),
        ] {
            let error = set(&scratch, name, values).unwrap_err();
            assert!(error.contains(says), "{name}: {error}");
        }
        scratch.write("backstop.toml", "[exec]\ntimeout = 30s\n");
        assert!(set(&scratch, "exec.idle", &["5"]).unwrap_err().contains("backstop.toml:2:11"));
        scratch.write("backstop.toml", "exec = 5\n");
        assert!(set(&scratch, "exec.idle", &["5"]).unwrap_err().contains("`exec` is not a section"));
        // A mistake elsewhere in the file does not keep a key from being set.
        scratch.write("backstop.toml", "[exec]\ntimout = 30\n");
        assert!(set(&scratch, "exec.timeout", &["30"]).is_ok());
    }

    #[test]
    fn a_users_file_is_made_where_it_belongs() {
        let scratch = Scratch::new();
        let done =
            edit(&scratch.around("work"), EditScope::User, "rules.packs", &["a.toml".to_owned()]).unwrap();
        assert_eq!(done.file.path, scratch.home.join(".config/backstop/config.toml"));
        assert!(!done.needs_trust);
    }
}
