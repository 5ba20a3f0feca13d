//! A fluent way to run the binary.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// One run of the binary.
pub(crate) struct Run {
    args: Vec<String>,
    stdin: Vec<u8>,
    env: Vec<(String, String)>,
}

impl Run {
    pub(crate) fn new(args: &[&str]) -> Self {
        Self { args: args.iter().map(ToString::to_string).collect(), stdin: Vec::new(), env: Vec::new() }
    }

    pub(crate) fn arg(mut self, arg: impl AsRef<Path>) -> Self {
        self.args.push(arg.as_ref().display().to_string());
        self
    }

    pub(crate) fn stdin(mut self, text: impl AsRef<[u8]>) -> Self {
        self.stdin = text.as_ref().to_vec();
        self
    }

    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn go(self) -> Done {
        let mut child = Command::new(env!("CARGO_BIN_EXE_backstop"))
            .args(&self.args)
            .env_remove("CI")
            .env("BACKSTOP_STATE_DIR", state_folder())
            .env("LC_ALL", "C.UTF-8")
            .envs(self.env)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let input = self.stdin;
        // On a thread of its own: a child that answers while it reads must not wait for us.
        let writer = std::thread::spawn(move || {
            let _ = stdin.write_all(&input);
        });
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap();
        Done { args: self.args, output }
    }
}

/// A state folder that all tests of this process share, unless they name their own.
fn state_folder() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("state")
}

/// What a run left behind.
pub(crate) struct Done {
    args: Vec<String>,
    output: Output,
}

impl Done {
    pub(crate) fn stdout(&self) -> String {
        String::from_utf8(self.output.stdout.clone()).expect("standard output is UTF-8")
    }

    pub(crate) fn stderr(&self) -> String {
        String::from_utf8(self.output.stderr.clone()).expect("standard error is UTF-8")
    }

    /// Checks the exit code, and that nothing panicked.
    pub(crate) fn code(self, want: i32) -> Self {
        assert!(!self.stderr().contains("panicked at"), "{:?}\n{}", self.args, self.stderr());
        assert_eq!(
            self.output.status.code(),
            Some(want),
            "{:?}\n{}{}",
            self.args,
            self.stdout(),
            self.stderr()
        );
        self
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout()).unwrap_or_else(|e| panic!("{e}: {}", self.stdout()))
    }

    pub(crate) fn lines(&self) -> Vec<serde_json::Value> {
        self.stdout().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// A folder that goes with the test.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, content).unwrap();
        path
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}
