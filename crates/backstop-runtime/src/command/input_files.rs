//! The files that a cached result depends on, by pattern: `src/**`, `*.toml`, `{a,b}.lock`.

use globset::GlobBuilder;
use std::path::{Path, PathBuf};

/// How many files a pattern may name.
const FILES_MAX: usize = 100_000;
/// How deep folders are walked.
const DEPTH_MAX: usize = 64;

/// The files below a folder that a pattern names, in order. Links are not followed, `.git` is
/// passed over.
pub(super) fn files(folder: &Path, pattern: &str) -> Result<Vec<PathBuf>, String> {
    let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
    if pattern.is_empty() || pattern.starts_with('/') || pattern.split('/').any(|part| part == "..") {
        return Err("it must name files below this folder".to_owned());
    }
    let glob = GlobBuilder::new(pattern).literal_separator(true).build();
    let matcher = glob.map_err(|error| error.kind().to_string())?.compile_matcher();
    let mut found = Vec::new();
    let from = literal_folder(pattern);
    walk(folder, &from, 0, &mut |path| {
        if matcher.is_match(&path) {
            found.push(path);
        }
        if found.len() > FILES_MAX { Err(format!("it names more than {FILES_MAX} files")) } else { Ok(()) }
    })?;
    found.sort();
    Ok(found)
}

/// The folders that a pattern begins with, as they are written: nothing else has to be walked.
fn literal_folder(pattern: &str) -> PathBuf {
    let folders = pattern.rsplit_once('/').map_or("", |(folders, _)| folders);
    folders.split('/').take_while(|part| !part.contains(['*', '?', '[', '{', '\\'])).collect()
}

fn walk(
    root: &Path,
    at: &Path,
    depth: usize,
    file: &mut dyn FnMut(PathBuf) -> Result<(), String>,
) -> Result<(), String> {
    if depth > DEPTH_MAX {
        return Ok(());
    }
    let Ok(entries) = std::fs::read_dir(root.join(at)) else { return Ok(()) };
    for entry in entries.flatten() {
        let Ok(kind) = entry.file_type() else { continue };
        let path = at.join(entry.file_name());
        if kind.is_dir() && entry.file_name() != ".git" {
            walk(root, &path, depth + 1, file)?;
        } else if kind.is_file() {
            file(path)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_name_files() {
        let temp = tempfile::tempdir().unwrap();
        for file in ["a.rs", "b.txt", "src/c.rs", "src/deep/d.rs", ".git/e.rs"] {
            let path = temp.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "x").unwrap();
        }
        std::os::unix::fs::symlink(temp.path().join("b.txt"), temp.path().join("link.rs")).unwrap();
        for (pattern, want) in [
            ("*.rs", vec!["a.rs"]),
            ("**/*.rs", vec!["a.rs", "src/c.rs", "src/deep/d.rs"]),
            ("src/**", vec!["src/c.rs", "src/deep/d.rs"]),
            ("./src/*.rs", vec!["src/c.rs"]),
            ("src/**/d.rs", vec!["src/deep/d.rs"]),
            ("?.txt", vec!["b.txt"]),
            ("{a,b}.*", vec!["a.rs", "b.txt"]),
            ("none/**", vec![]),
        ] {
            let want: Vec<PathBuf> = want.into_iter().map(PathBuf::from).collect();
            assert_eq!(files(temp.path(), pattern).unwrap(), want, "{pattern}");
        }
        for bad in ["", "/etc/*", "../x", "a/../../b", "src/[a"] {
            assert!(files(temp.path(), bad).is_err(), "{bad}");
        }
    }
}
