//! Finds names of files in a line of text.

/// Endings that say: this is a file.
const ENDINGS: &[&str] = &[
    "adb",
    "ads",
    "asm",
    "bats",
    "c",
    "cc",
    "cfg",
    "clj",
    "cmake",
    "conf",
    "cpp",
    "cs",
    "css",
    "csv",
    "cxx",
    "d",
    "dart",
    "db",
    "erl",
    "ex",
    "exs",
    "f",
    "f90",
    "feature",
    "go",
    "gradle",
    "h",
    "hpp",
    "hs",
    "html",
    "ini",
    "ipynb",
    "java",
    "js",
    "json",
    "jsx",
    "kt",
    "kts",
    "less",
    "lock",
    "log",
    "lua",
    "m",
    "md",
    "mjs",
    "ml",
    "mli",
    "mm",
    "nim",
    "pas",
    "php",
    "pl",
    "pm",
    "properties",
    "proto",
    "ps1",
    "py",
    "pyi",
    "r",
    "R",
    "rb",
    "rkt",
    "rs",
    "rst",
    "scala",
    "scm",
    "scss",
    "sh",
    "sql",
    "svelte",
    "swift",
    "t",
    "tcl",
    "tex",
    "tf",
    "toml",
    "ts",
    "tsx",
    "txt",
    "vue",
    "xml",
    "xsd",
    "y",
    "yaml",
    "yml",
    "zig",
    "zip",
    "gz",
    "tar",
    "env",
    "mod",
    "sum",
    "gemspec",
    "rake",
    "robot",
    "ac",
    "am",
    "in",
    "cjs",
    "cts",
    "mts",
];

/// Files that have no ending.
const NAMES: &[&str] = &[
    "Makefile",
    "Dockerfile",
    "Gemfile",
    "Rakefile",
    "Pipfile",
    "Procfile",
    "CMakeLists.txt",
    "Vagrantfile",
    "Jenkinsfile",
];

/// The files that a line mentions.
pub(crate) fn files(line: &str) -> impl Iterator<Item = &str> {
    let inside = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '/' | '@' | '+' | '~' | '\\');
    line.split(move |c: char| !inside(c))
        .map(|word| word.trim_matches(['.', ',']))
        .filter(|word| is_file(word))
}

fn is_file(word: &str) -> bool {
    let name = word.rsplit(['/', '\\']).next().unwrap_or(word);
    if NAMES.contains(&name) {
        return true;
    }
    // `//host/a.js` is what is left of an address.
    let Some((stem, ending)) = name.rsplit_once('.') else { return false };
    !stem.is_empty() && !word.starts_with("//") && ENDINGS.contains(&ending) && word.len() <= 200
}

#[cfg(test)]
mod tests {
    #[test]
    fn files_are_told_from_words_and_addresses() {
        let line = "error: can't open '/home/user/run_all.py' or src/a.c:3 see http://x.example/b.html and java.lang.String 1.2.3";
        assert_eq!(super::files(line).collect::<Vec<_>>(), ["/home/user/run_all.py", "src/a.c"]);
        assert_eq!(super::files("Makefile:2: *** missing separator").collect::<Vec<_>>(), ["Makefile"]);
    }
}
