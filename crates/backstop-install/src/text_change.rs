//! A planned change of a part of a text file, which can be undone to the byte: an object in a JSON
//! file is replaced, or text is added at the end. For MCP servers that move behind the gateway.

use super::change::read_in;
use super::diff::unified;
use super::error::InstallError;
use super::patch::{Patch, apply, inverse};
use super::record::{Record, Records, Undo, hash};
use backstop_core::json::{Value, parse};
use backstop_files::{Durability, Folder};
use std::path::{Path, PathBuf};

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
        record.undo = Some(Undo { hash: hash(&after), patches });
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
        let patch = Patch { at: node.start, take: node.end - node.start, put: put.to_owned() };
        Ok(Some(Self::planned(project, file, Some(text), &[patch])))
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

    /// Plans to undo the change that is on record for a file; `None` if there is none. A file that
    /// was changed since is an error: nobody knows what of it is ours.
    pub fn undo(project: &Path, file: &Path, records: &Records) -> Result<Option<Self>, InstallError> {
        let Some(record) = records.load(file) else { return Ok(None) };
        let Some(undo) = &record.undo else { return Ok(None) };
        let before = read_in(Some(project), file)?;
        let text = before.clone().unwrap_or_default();
        let restored = (hash(&text) == undo.hash).then(|| apply(&text, &undo.patches)).flatten();
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
}
