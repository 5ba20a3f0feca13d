//! Programs of servers that a killed Backstop left behind: each is noted in a file of the state
//! folder while it runs, and ended by whoever finds the file without its writer.

use backstop_core::Name;
use backstop_exec::{Leftover, Started, end_leftover, tree};
use backstop_files::{Durability, Folder};
use backstop_runtime::{Process, Project};
use backstop_store::ProcessId;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The variable by which the processes of a server are found.
pub(crate) const MARK_VARIABLE: &str = "BACKSTOP_UPSTREAM_MARK";

/// The largest note that is read, in bytes.
const FILE_BYTES_MAX: u64 = 64 << 10;

#[derive(Debug, Serialize, Deserialize)]
struct Noted {
    /// The process of the server.
    pid: u32,
    start: u64,
    mark: String,
    /// The Backstop that started it.
    owner_pid: u32,
    owner_start: u64,
}

/// The file that notes one program. It goes with this value.
#[derive(Debug)]
pub(crate) struct ChildFile(PathBuf);

impl Drop for ChildFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

impl ChildFile {
    /// Notes a program. Where that cannot be written, nothing is noted: it changes no call.
    pub(crate) fn write(project: &Project, started: &Started, mark: &str) -> Option<Self> {
        let owner = project.process.id;
        let noted = Noted {
            pid: started.process.pid,
            start: started.process.start,
            mark: mark.to_owned(),
            owner_pid: owner.pid,
            owner_start: owner.start,
        };
        let folder = folder(project)?;
        let path = folder.join(format!("{mark}.json"));
        let text = serde_json::to_vec(&noted).ok()?;
        Folder::new(&folder).replace(&path, &text, Durability::Later).ok().map(|()| Self(path))
    }
}

fn folder(project: &Project) -> Option<PathBuf> {
    let name: Name = "mcp-children".parse().ok()?;
    project.folder().ok()?.work_folder(&project.root, &name).ok()
}

/// A mark that no other process has.
pub(crate) fn mark(process: &Process) -> String {
    format!("{}-{:x}", process.id.pid, (process.random)())
}

/// Ends what killed Backstops left running in this project. Returns the names of the programs.
pub(crate) fn end_all(project: &Project) -> Vec<String> {
    let mut ended = Vec::new();
    let Some(folder) = folder(project) else { return ended };
    let opener = Folder::new(&folder);
    for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
        let text = opener.read(&entry.path(), FILE_BYTES_MAX).ok().flatten().unwrap_or_default();
        let Ok(noted) = serde_json::from_slice::<Noted>(&text) else { continue };
        let owner = ProcessId { pid: noted.owner_pid, start: noted.owner_start };
        if (project.process.is_alive)(&owner) {
            continue;
        }
        let process = Some(tree::Process { pid: noted.pid, start: noted.start });
        ended.extend(end_leftover(&Leftover { process, mark: (MARK_VARIABLE, &noted.mark) }));
        let _ = std::fs::remove_file(entry.path());
    }
    ended
}
