//! Refs that are files: reading one costs no process.
//!
//! Only a file that has the full name of an object is an answer. Where there is anything else (refs
//! in tables, a packed ref, one that names another, none at all), git has to be asked.

use super::Sha;
use super::slot::read_short;
use std::path::Path;

/// The refs of which all worktrees have the same.
const SHARED: [&str; 2] = ["refs/heads/", "refs/backstop/"];

/// Whether a working tree keeps its refs in tables. Elsewhere `HEAD` and its like are files.
pub(crate) fn has_ref_tables(git_dir: &Path) -> bool {
    git_dir.join("reftable").exists()
}

/// Where a ref is that all worktrees share.
pub(crate) fn shared(common_dir: &Path, name: &str) -> Option<Sha> {
    let is_shared = SHARED.iter().any(|prefix| name.starts_with(prefix));
    if is_shared { commit(common_dir, name) } else { None }
}

/// The commit that is checked out.
pub(crate) fn head(git_dir: &Path, common_dir: &Path) -> Option<Sha> {
    commit(git_dir, "HEAD").or_else(|| shared(common_dir, &branch(git_dir)?))
}

/// The branch that `HEAD` names.
pub(crate) fn branch(git_dir: &Path) -> Option<String> {
    let text = read(git_dir, "HEAD")?;
    let name = text.strip_prefix("ref:")?.trim();
    name.starts_with("refs/").then(|| name.to_owned())
}

/// The commit in the file of a ref.
pub(crate) fn commit(folder: &Path, name: &str) -> Option<Sha> {
    read(folder, name)?.trim_end().parse().ok()
}

fn read(folder: &Path, name: &str) -> Option<String> {
    if has_ref_tables(folder) { None } else { read_short(&folder.join(name)) }
}
