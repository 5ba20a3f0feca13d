//! The terminal: what may be shown on it, and writing to it.

use crate::error::{CliError, FAILED};
use crate::process;
use backstop_core::{Redactor, SafeText};
use backstop_report::{Style, View, to_json};
use backstop_runtime::Output;
use backstop_runtime::project;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// How much of an error message is shown.
const LINE_CHARS_MAX: usize = 2000;

/// How to dress what goes to standard output.
pub(crate) fn stdout_style() -> Style {
    style(std::io::stdout().is_terminal())
}

fn style(terminal: bool) -> Style {
    let set = |name: &str| std::env::var_os(name).is_some_and(|v| !v.is_empty());
    let dumb = std::env::var("TERM").is_ok_and(|t| t == "dumb");
    Style { colour: terminal && !set("NO_COLOR") && !set("CI") && !dumb, unicode: is_utf8() }
}

fn is_utf8() -> bool {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
        .into_iter()
        .find_map(|name| std::env::var(name).ok().filter(|v| !v.is_empty()));
    // Without any locale there is nothing against it: containers have none, and their logs are
    // UTF-8.
    locale.is_none_or(|l| {
        let l = l.to_ascii_lowercase();
        l.contains("utf-8") || l.contains("utf8")
    })
}

/// How to dress what goes to standard error.
pub(crate) fn stderr_style() -> Style {
    style(std::io::stderr().is_terminal())
}

/// The redactor of everything that is shown: of the project, once it is open; before that, one that
/// knows the secrets in the environment and in credential files.
pub(crate) fn redactor() -> Arc<Redactor> {
    let known = REDACTOR.read().unwrap_or_else(PoisonError::into_inner).clone();
    known.unwrap_or_else(|| {
        let redactor =
            Arc::new(project::redactor(process::variables(), Vec::new(), Vec::new(), process::home()));
        mask_with(Arc::clone(&redactor));
        redactor
    })
}

/// From now on, the redactor of this project masks what is shown.
pub(crate) fn redact_with(redactor: Arc<Redactor>) {
    IS_PROJECT_KNOWN.store(true, Ordering::Relaxed);
    mask_with(redactor);
}

fn mask_with(redactor: Arc<Redactor>) {
    *REDACTOR.write().unwrap_or_else(PoisonError::into_inner) = Some(redactor);
}

static IS_PROJECT_KNOWN: AtomicBool = AtomicBool::new(false);

static REDACTOR: RwLock<Option<Arc<Redactor>>> = RwLock::new(None);

/// Standard error, as the runtime knows it.
pub(crate) struct Terminal;

impl Output for Terminal {
    fn warn(&self, what: &str, hint: Option<&str>) {
        warn(what, hint);
    }

    fn message(&self, text: &str) {
        say(&format!("\n{text}"));
    }

    fn command_wrote(&self, ends_mid_line: bool) {
        IS_MID_LINE.store(ends_mid_line, Ordering::Relaxed);
    }

    fn is_quiet(&self) -> bool {
        is_quiet()
    }
}

/// Whether the last thing on standard error is a line of the command's without an end.
static IS_MID_LINE: AtomicBool = AtomicBool::new(false);

/// Writes data to standard output. A closed pipe is no error: the reader has seen enough.
pub(crate) fn print(text: &str) -> Result<(), CliError> {
    write(text).map_err(CliError::output)
}

/// The same, with the error as it comes.
pub(crate) fn write(text: &str) -> std::io::Result<()> {
    write_bytes(text.as_bytes())
}

/// Bytes as they are.
pub(crate) fn write_bytes(bytes: &[u8]) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    match backstop_exec::write_patiently(&mut out, bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// Writes what a command shows: JSON for programs, else text for people.
pub(crate) fn show(view: &impl View, json: bool) -> Result<(), CliError> {
    if json { print(&format!("{}\n", view.json_line())) } else { print(&view.text(stdout_style())) }
}

/// Writes a value as one line of JSON.
pub(crate) fn print_json(value: &impl serde::Serialize) -> Result<(), CliError> {
    print(&format!("{}\n", to_json(value)))
}

/// Says nothing of our own from now on, except errors.
pub(crate) fn be_quiet() {
    QUIET.store(true, Ordering::Relaxed);
}

/// Whether nothing of our own is to be said.
pub(crate) fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

static QUIET: AtomicBool = AtomicBool::new(false);

/// Whether somebody watches standard error, on a terminal that can overwrite a line.
pub(crate) fn is_watched() -> bool {
    let set = |name: &str| std::env::var_os(name).is_some_and(|v| !v.is_empty());
    std::io::stderr().is_terminal() && !set("CI") && std::env::var("TERM").is_ok_and(|t| t != "dumb")
}

/// How wide and how high the terminal is; what is usual where there is none.
pub(crate) fn size() -> (usize, usize) {
    match rustix::termios::tcgetwinsize(rustix::stdio::stderr()) {
        Ok(size) if size.ws_col > 0 => (size.ws_col.into(), usize::from(size.ws_row).max(4)),
        _ => (100, 24),
    }
}

/// How wide standard output is: wide where nobody watches, so that nothing is cut.
pub(crate) fn stdout_width() -> usize {
    match rustix::termios::tcgetwinsize(rustix::stdio::stdout()) {
        Ok(size) if size.ws_col > 0 => size.ws_col.into(),
        _ => 240,
    }
}

/// Says something to people, on standard error. That it cannot be said is no reason to fail.
pub(crate) fn say(text: &str) {
    if text.is_empty() {
        return;
    }
    let mut out = std::io::stderr().lock();
    if IS_MID_LINE.swap(false, Ordering::Relaxed) {
        let _ = backstop_exec::write_patiently(&mut out, b"\n");
    }
    let _ = backstop_exec::write_patiently(&mut out, text.as_bytes());
}

/// Passes on what a command wrote some time ago; with JSON on standard output, all of it on
/// standard error.
pub(crate) fn pass_on(stdout: &[u8], stderr: &[u8], json: bool) {
    use backstop_exec::write_patiently as patiently;
    if json {
        let _ = patiently(&mut std::io::stderr().lock(), stdout);
    } else {
        let mut out = std::io::stdout().lock();
        let _ = patiently(&mut out, stdout).and_then(|()| out.flush());
    }
    let _ = patiently(&mut std::io::stderr().lock(), stderr);
}

/// Warns, with what to do about it.
pub(crate) fn warn(what: &str, hint: Option<&str>) {
    let style = stderr_style();
    let redactor = redactor();
    let line = |text: &str| SafeText::new(redactor.redact(text).into_owned()).line(LINE_CHARS_MAX);
    let mut text = format!("{} {}\n", style.strong("warning:"), line(what));
    if let Some(hint) = hint {
        text.push_str(&format!("{} {}\n", style.strong("hint:"), line(hint)));
    }
    say(&text);
}

/// Warns where a project's configuration is not trusted and has something that needs it.
pub(crate) fn warn_inert(config: &backstop_config::Config) {
    if let Some((what, hint)) = backstop_config::untrusted(config) {
        warn(&what, Some(&hint));
    }
}

/// Warns where a key is set in a file that is not trusted, so that it is ignored.
pub(crate) fn warn_inert_key(config: &backstop_config::Config, key: &str) {
    if config.inert().iter().any(|inert| inert.key == key) {
        warn_inert(config);
    }
}

/// Warns of problems in config files and variables, once in a process: the values that they are in
/// are ignored, and the command goes on.
pub(crate) fn warn_problems(config: &backstop_config::Config) {
    static IS_TOLD: AtomicBool = AtomicBool::new(false);
    if is_quiet() {
        return;
    }
    if let Some((what, hint)) = backstop_config::warning(config)
        && !IS_TOLD.swap(true, Ordering::Relaxed)
    {
        warn(&what, Some(&hint));
    }
}

/// Whether anybody still reads our standard output.
pub(crate) fn is_read() -> bool {
    let out = rustix::stdio::stdout();
    let mut watched = [rustix::event::PollFd::new(&out, rustix::event::PollFlags::empty())];
    let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
    let gone = rustix::event::PollFlags::ERR | rustix::event::PollFlags::NVAL;
    !matches!(rustix::event::poll(&mut watched, Some(&now)), Ok(n) if n > 0 && watched[0].revents().intersects(gone))
}

/// Tells a person at a terminal that we wait for them.
pub(crate) fn tell_waiting() {
    if std::io::stdin().is_terminal() && std::io::stderr().is_terminal() {
        let _ = std::io::stderr().lock().write_all(b"reading standard input; end it with Ctrl-D\n");
    }
}

/// What clap has to say: help and version as they are, errors with what was typed escaped and
/// redacted.
pub(crate) fn tell_usage(error: &clap::Error, code: u8) -> ExitCode {
    if error.use_stderr() {
        learn_secrets();
    }
    if !error.use_stderr() {
        let text = error.render();
        let text = if stdout_style().colour { text.ansi().to_string() } else { text.to_string() };
        return if print(&text).is_ok() { ExitCode::SUCCESS } else { ExitCode::from(FAILED) };
    }
    let text = SafeText::new(redactor().redact(&error.render().to_string()).into_owned());
    say(&text.terminal());
    ExitCode::from(code)
}

/// What was typed may hold a secret that only the project's settings name.
fn learn_secrets() {
    if !IS_PROJECT_KNOWN.load(Ordering::Relaxed) {
        let _ = process::open_quietly(&[], None);
    }
}

/// Tells a person about an error, on standard error.
pub(crate) fn tell(error: &CliError) {
    learn_secrets();
    let terminal = std::io::stderr().is_terminal();
    let style = style(terminal);
    let redactor = redactor();
    let safe = |text: &str| SafeText::new(redactor.redact(text).into_owned());
    // Of several lines, each is ours; a line end inside one is somebody else's.
    let message = safe(&error.to_string());
    let message = if error.is_multiline { message.terminal() } else { message.line(LINE_CHARS_MAX) };
    let mut text = format!("{} {message}\n", style.bad("error:"));
    for hint in error.hints() {
        text.push_str(&format!("{} {}\n", style.strong("hint:"), safe(hint).line(LINE_CHARS_MAX)));
    }
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}
