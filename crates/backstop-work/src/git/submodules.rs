//! Submodules, which are in no worktree unless they are cloned again.

use super::Repo;

/// The largest `.gitmodules` that is read.
const FILE_BYTES_MAX: u64 = 1 << 20;

impl Repo {
    /// The paths of the submodules that are checked out in the user's tree: what they hold is not in
    /// worktrees, and what is written there is in no commit of the repository.
    pub fn checked_out_submodules(&self) -> Vec<String> {
        let file = self.root().join(".gitmodules");
        let is_small =
            file.symlink_metadata().is_ok_and(|found| found.is_file() && found.len() <= FILE_BYTES_MAX);
        let text = if is_small { std::fs::read_to_string(&file).unwrap_or_default() } else { String::new() };
        let paths = text.lines().filter_map(|line| {
            let (key, path) = line.split_once('=')?;
            (key.trim() == "path").then(|| path.trim().trim_matches('"').to_owned())
        });
        paths.filter(|path| !path.is_empty() && self.root().join(path).join(".git").exists()).collect()
    }
}
