//! A planned change of a part of a text file, which can be undone to the byte: an object in a JSON
//! file or a table in a TOML file is replaced, or text is added at the end. For MCP servers that
//! move behind the gateway.

use super::change::read_in;
use super::diff::unified;
use super::error::InstallError;
use super::patch::{Patch, apply, inverse};
use super::record::{Part, Record, Records, Undo, hash};
use backstop_core::json::{Value, parse};
use backstop_core::{Redactor, SafeText};
use backstop_files::{Durability, Folder};
use backstop_report::FileChange;
use std::path::{Path, PathBuf};

/// How much of a path is shown.
const PATH_CHARS_MAX: usize = 400;

/// A planned change of one file. Nothing is written before [`TextChange::apply`].
#[derive(Debug)]
pub struct TextChange {
    /// The file.
    pub file: PathBuf,
    /// The project that the file is in. Links in it are not followed.
    project: PathBuf,
    before: Option<String>,
    /// `None` if the file is removed.
    after: Option<String>,
    /// What is to be stored; nothing where the record goes.
    record: Option<Record>,
}

impl TextChange {
    fn planned(project: &Path, file: &Path, before: Option<String>, patches: &[Patch]) -> Self {
        let text = before.clone().unwrap_or_default();
        // The patches were made from this text, so both always apply.
        let after = apply(&text, patches).unwrap_or_else(|| text.clone());
        let mut record = Record::new(file, before.is_none(), Vec::new());
        let patches = inverse(&text, patches).unwrap_or_default();
        record.undo = Some(Undo { hash: hash(&after), patches, part: None });
        let (file, project) = (file.to_owned(), project.to_owned());
        Self { file, project, before, after: Some(after), record: Some(record) }
    }

    /// Plans to replace the object under `key` of a JSON file; `None` if there is no such object.
    pub fn replace_object(
        project: &Path,
        file: &Path,
        key: &str,
        put: &str,
    ) -> Result<Option<Self>, InstallError> {
        let Some(text) = read_in(Some(project), file)? else { return Ok(None) };
        let root = parse(&text).map_err(|error| InstallError::at(file, &text, error))?;
        let Some(Value::Object(members)) = root.as_ref().map(|root| &root.value) else { return Ok(None) };
        let Some(member) = members.iter().find(|member| member.key == key) else { return Ok(None) };
        let node = &member.node;
        if !matches!(node.value, Value::Object(_)) {
            return Ok(None);
        }
        let was = text[node.start..node.end].to_owned();
        let patch = Patch { at: node.start, take: node.end - node.start, put: put.to_owned() };
        let part = Part { key: key.to_owned(), put: put.to_owned(), was };
        Ok(Some(Self::planned(project, file, Some(text), &[patch]).with_part(part)))
    }

    /// Plans to replace the table under `key` of a TOML file by the one in the text `put`; `None`
    /// if there is no such table.
    pub fn replace_table(
        project: &Path,
        file: &Path,
        key: &str,
        put: &str,
    ) -> Result<Option<Self>, InstallError> {
        let Some(text) = read_in(Some(project), file)? else { return Ok(None) };
        let Some((rest, was)) = without_table(&text, key) else { return Ok(None) };
        let patch = Patch { at: 0, take: text.len(), put: followed_by(&rest, put) };
        let part = Part { key: key.to_owned(), put: put.to_owned(), was };
        Ok(Some(Self::planned(project, file, Some(text), &[patch]).with_part(part)))
    }

    /// Remembers which part was replaced: it can be put back although others have changed the rest.
    fn with_part(mut self, part: Part) -> Self {
        if let Some(undo) = self.record.as_mut().and_then(|record| record.undo.as_mut()) {
            undo.part = Some(part);
        }
        self
    }

    /// Plans to add text at the end of a file, which is created if it is missing.
    pub fn append(project: &Path, file: &Path, text: &str) -> Result<Self, InstallError> {
        let before = read_in(Some(project), file)?;
        let known = before.as_deref().unwrap_or_default();
        let start = if known.is_empty() || known.ends_with('\n') { "" } else { "\n" };
        let patch = Patch { at: known.len(), take: 0, put: format!("{start}{text}") };
        Ok(Self::planned(project, file, before.clone(), &[patch]))
    }

    /// Plans to create a file with this text. `None` if it has that text already; a file that has
    /// another one is an error: it is somebody else's.
    pub fn create(project: &Path, file: &Path, text: &str) -> Result<Option<Self>, InstallError> {
        match read_in(Some(project), file)? {
            Some(known) if known == text => Ok(None),
            Some(_) => Err(InstallError::NotOurs { file: file.to_owned() }),
            None => {
                let patch = Patch { at: 0, take: 0, put: text.to_owned() };
                Ok(Some(Self::planned(project, file, None, &[patch])))
            }
        }
    }

    /// Plans to undo the change that is on record for a file; `None` if there is none. In a file
    /// that was changed since, the part that was replaced is put back if it is still ours; else it
    /// is an error: nobody knows what of it is ours.
    pub fn undo(project: &Path, file: &Path, records: &Records) -> Result<Option<Self>, InstallError> {
        let Some(record) = records.load(file) else { return Ok(None) };
        let Some(undo) = &record.undo else { return Ok(None) };
        let before = read_in(Some(project), file)?;
        let text = before.clone().unwrap_or_default();
        let whole = (hash(&text) == undo.hash).then(|| apply(&text, &undo.patches)).flatten();
        let restored = whole.or_else(|| undo.part.as_ref()?.put_back(file, &text));
        let Some(restored) = restored else {
            return Err(InstallError::ChangedSince { file: file.to_owned() });
        };
        let after = (!record.made_file || !restored.is_empty()).then_some(restored);
        Ok(Some(Self { file: file.to_owned(), project: project.to_owned(), before, after, record: None }))
    }

    /// The change as `diff -u` would show it. It contains text of the file.
    pub fn diff(&self, name: &str) -> String {
        let side = |text: &Option<String>| if text.is_some() { name } else { "/dev/null" };
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let body = unified(&text(&self.before), &text(&self.after));
        format!("--- {}\n+++ {}\n{body}", side(&self.before), side(&self.after))
    }

    /// The change as reports show it, with a path relative to `folder` where it is below it, and
    /// masked.
    pub fn row(&self, folder: &Path, redactor: &Redactor) -> FileChange {
        let path = self.file.strip_prefix(folder).unwrap_or(&self.file).display().to_string();
        let diff = self.diff(&SafeText::new(path).line(PATH_CHARS_MAX));
        FileChange { file: self.file.clone(), diff: redactor.redact(&diff).into_owned() }
    }

    /// Writes the change.
    pub fn apply(&self, records: &Records) -> Result<(), InstallError> {
        let file = &self.file;
        if read_in(Some(&self.project), file)? != self.before {
            return Err(InstallError::Changed { file: file.clone() });
        }
        let failed = |error| InstallError::Write { file: file.clone(), error };
        // The record is stored before the file is written, and goes after it.
        if let Some(record) = &self.record
            && !records.save(file, Some(record))
        {
            return Err(failed(std::io::Error::other("what was there before cannot be kept")));
        }
        if let Some(folder) = file.parent().filter(|folder| self.after.is_some() && !folder.is_dir()) {
            Folder::new(&self.project).make_folder(folder).map_err(|error| failed(error.into()))?;
        }
        match &self.after {
            Some(after) => Folder::new(&self.project)
                .replace(file, after.as_bytes(), Durability::OnDisk)
                .map_err(std::io::Error::from),
            None => std::fs::remove_file(file),
        }
        .map_err(failed)?;
        if self.record.is_none() {
            records.save(file, None);
        }
        Ok(())
    }
}

impl Part {
    /// The text with the part as it was, if it is still what was put there.
    fn put_back(&self, file: &Path, text: &str) -> Option<String> {
        if file.extension().is_some_and(|extension| extension == "toml") {
            let (rest, now) = without_table(text, &self.key)?;
            let same = |one: &str, other: &str| {
                let read = |text: &str| text.parse::<toml_edit::DocumentMut>().ok();
                let plain = |text: &str| read(text).map(|read| read.to_string().split_whitespace().collect());
                plain(one).zip(plain(other)).is_some_and(|(one, other): (String, String)| one == other)
            };
            return same(&now, &self.put).then(|| followed_by(&rest, &self.was));
        }
        let root = parse(text).ok()?;
        let Some(Value::Object(members)) = root.as_ref().map(|root| &root.value) else { return None };
        let node = &members.iter().find(|member| member.key == self.key)?.node;
        let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).ok();
        let is_ours = value(&text[node.start..node.end]).zip(value(&self.put)).is_some_and(|(a, b)| a == b);
        is_ours.then(|| format!("{}{}{}", &text[..node.start], self.was, &text[node.end..]))
    }
}

/// A TOML text without the table under a key, and that table alone.
fn without_table(text: &str, key: &str) -> Option<(String, String)> {
    let mut rest: toml_edit::DocumentMut = text.parse().ok()?;
    rest.get(key).filter(|item| item.is_table_like())?;
    let mut alone = rest.clone();
    rest.remove(key);
    alone.retain(|name, _| name == key);
    alone.set_trailing("");
    Some((rest.to_string(), alone.to_string()))
}

/// A text, and another one below it.
fn followed_by(text: &str, more: &str) -> String {
    let gap = match text {
        "" => "",
        text if text.ends_with("\n\n") => "",
        text if text.ends_with('\n') => "\n",
        _ => "\n\n",
    };
    format!("{text}{gap}{}", more.trim_start_matches('\n'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_replaced_and_added_comes_back_to_the_byte() {
        let folder = tempfile::tempdir().unwrap();
        let records = Records::new(Some(folder.path().join("records")));
        let file = folder.path().join("a.json");
        let text = "{ // servers\n  \"other\": 1,\n  \"mcpServers\" : {\"a\":{\"command\":\"x\"},},\n}\n";
        std::fs::write(&file, text).unwrap();
        let change =
            TextChange::replace_object(folder.path(), &file, "mcpServers", "{\"b\": {}}").unwrap().unwrap();
        assert!(
            change.diff("a.json").contains("+  \"mcpServers\" : {\"b\": {}},"),
            "{}",
            change.diff("a.json")
        );
        change.apply(&records).unwrap();
        assert!(std::fs::read_to_string(&file).unwrap().contains("// servers"));
        TextChange::undo(folder.path(), &file, &records).unwrap().unwrap().apply(&records).unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
        assert!(TextChange::undo(folder.path(), &file, &records).unwrap().is_none());

        let made = folder.path().join("b.toml");
        TextChange::append(folder.path(), &made, "[mcp.a]\n").unwrap().apply(&records).unwrap();
        TextChange::undo(folder.path(), &made, &records).unwrap().unwrap().apply(&records).unwrap();
        assert!(!made.exists());
        std::fs::write(&made, "x = 1").unwrap();
        TextChange::append(folder.path(), &made, "[mcp.a]\n").unwrap().apply(&records).unwrap();
        assert_eq!(std::fs::read_to_string(&made).unwrap(), "x = 1\n[mcp.a]\n");
        // What somebody changed since is left as it is.
        std::fs::write(&made, "x = 2\n[mcp.a]\n").unwrap();
        assert!(matches!(
            TextChange::undo(folder.path(), &made, &records),
            Err(InstallError::ChangedSince { .. })
        ));
        assert!(TextChange::replace_object(folder.path(), &file, "nope", "{}").unwrap().is_none());
    }

    #[test]
    fn a_table_of_toml_is_replaced_and_comes_back_also_after_others_changed_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let records = Records::new(Some(folder.path().join("records")));
        let file = folder.path().join("config.toml");
        let text = "model = \"m\" # mine\n\n# servers\n[mcp_servers.a]\ncommand = \"x\"\n[mcp_servers.a.env]\nK = \"v\"\n\n[projects.\"/p\"]\ntrust = 1\n";
        std::fs::write(&file, text).unwrap();
        let put = "[mcp_servers.backstop]\ncommand = \"backstop\"\nargs = [\"mcp\"]\n";
        let replace =
            || TextChange::replace_table(folder.path(), &file, "mcp_servers", put).unwrap().unwrap();
        replace().apply(&records).unwrap();
        let now = std::fs::read_to_string(&file).unwrap();
        assert!(now.contains("# mine") && now.contains("[projects") && now.ends_with(put), "{now}");
        assert!(!now.contains("mcp_servers.a]"), "{now}");
        let undo = || TextChange::undo(folder.path(), &file, &records).unwrap().unwrap().apply(&records);
        undo().unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
        // The program itself has written to the file meanwhile.
        replace().apply(&records).unwrap();
        let changed = std::fs::read_to_string(&file).unwrap().replace("trust = 1", "trust = 2");
        std::fs::write(&file, &changed).unwrap();
        undo().unwrap();
        let now = std::fs::read_to_string(&file).unwrap();
        assert!(
            now.contains("trust = 2") && now.contains("[mcp_servers.a]") && !now.contains("backstop"),
            "{now}"
        );
        // Likewise an object of JSON; not if somebody changed it.
        let file = folder.path().join("claude.json");
        std::fs::write(&file, "{\"n\": 1, \"mcpServers\": {\"a\": 1}}").unwrap();
        let change = || TextChange::replace_object(folder.path(), &file, "mcpServers", "{\"b\": {}}");
        change().unwrap().unwrap().apply(&records).unwrap();
        std::fs::write(&file, "{\"n\": 2, \"mcpServers\": { \"b\":{} }}").unwrap();
        TextChange::undo(folder.path(), &file, &records).unwrap().unwrap().apply(&records).unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "{\"n\": 2, \"mcpServers\": {\"a\": 1}}");
        change().unwrap().unwrap().apply(&records).unwrap();
        std::fs::write(&file, "{\"mcpServers\": {\"b\": {}, \"c\": 1}}").unwrap();
        let error = TextChange::undo(folder.path(), &file, &records);
        assert!(matches!(error, Err(InstallError::ChangedSince { .. })));
    }
}
