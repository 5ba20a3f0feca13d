//! Files by pattern: `*` and `?` within a name, `**` over folders.

use std::path::{Path, PathBuf};

/// How many files a pattern may name.
const FILES_MAX: usize = 100_000;
/// How deep folders are walked.
const DEPTH_MAX: usize = 64;

/// The files below a folder that a pattern names, in order. Links are not followed, `.git` is passed over.
pub(crate) fn files(folder: &Path, pattern: &str) -> Result<Vec<PathBuf>, String> {
    let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
    if pattern.is_empty() || pattern.starts_with('/') || pattern.split('/').any(|part| part == "..") {
        return Err("it must name files below this folder".to_owned());
    }
    let parts: Vec<&str> = pattern.split('/').filter(|part| !part.is_empty()).collect();
    let mut found = Vec::new();
    walk(folder, Path::new(""), &parts, 0, &mut found)?;
    found.sort();
    found.dedup();
    Ok(found)
}

fn walk(
    root: &Path,
    at: &Path,
    parts: &[&str],
    depth: usize,
    found: &mut Vec<PathBuf>,
) -> Result<(), String> {
    let Some((first, rest)) = parts.split_first() else { return Ok(()) };
    if depth > DEPTH_MAX {
        return Ok(());
    }
    if *first == "**" && !rest.is_empty() {
        walk(root, at, rest, depth, found)?;
    }
    let Ok(entries) = std::fs::read_dir(root.join(at)) else { return Ok(()) };
    for entry in entries.flatten() {
        let Ok(kind) = entry.file_type() else { continue };
        let name = entry.file_name();
        let path = at.join(&name);
        let fits = *first == "**" || matches(first, &name.to_string_lossy());
        if kind.is_dir() && name != ".git" {
            if *first == "**" {
                walk(root, &path, parts, depth + 1, found)?;
            } else if fits {
                walk(root, &path, rest, depth + 1, found)?;
            }
        } else if kind.is_file() && fits && rest.is_empty() {
            found.push(path);
            if found.len() > FILES_MAX {
                return Err(format!("it names more than {FILES_MAX} files"));
            }
        }
    }
    Ok(())
}

/// Whether a name fits a pattern of `*`, `?` and letters. Linear in the name for every star.
fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    let (mut p, mut n) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(c) if *c == '?' || *c == name[n] => {
                p += 1;
                n += 1;
            }
            _ => match star {
                Some((at, from)) => {
                    p = at + 1;
                    n = from + 1;
                    star = Some((at, from + 1));
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_patterns() {
        for (pattern, name, want) in [
            ("*.rs", "main.rs", true),
            ("*.rs", "main.rsx", false),
            ("m?in.*", "main.rs", true),
            ("a*b*c", "axxbyyc", true),
            ("a*b*c", "axxbyy", false),
            ("*", "", true),
            ("?", "", false),
        ] {
            assert_eq!(matches(pattern, name), want, "{pattern} {name}");
        }
        assert!(!matches(&"*a".repeat(50), &"a".repeat(40)));
    }

    #[test]
    fn files_are_found_below_and_nowhere_else() {
        let root = std::env::temp_dir().join(format!("backstop-glob-{}", std::process::id()));
        for file in ["src/a.rs", "src/deep/b.rs", "src/deep/c.txt", ".git/config", "top.rs"] {
            let path = root.join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "x").unwrap();
        }
        let found = |pattern: &str| -> Vec<String> {
            files(&root, pattern).unwrap().iter().map(|p| p.display().to_string()).collect()
        };
        assert_eq!(found("src/**"), ["src/a.rs", "src/deep/b.rs", "src/deep/c.txt"]);
        assert_eq!(found("**/*.rs"), ["src/a.rs", "src/deep/b.rs", "top.rs"]);
        assert_eq!(found("src/*.rs"), ["src/a.rs"]);
        assert_eq!(found("nothing/**"), Vec::<String>::new());
        for bad in ["/etc/*", "../x", "", "a/../../b"] {
            assert!(files(&root, bad).is_err(), "{bad}");
        }
        std::fs::remove_dir_all(&root).unwrap();
    }
}
