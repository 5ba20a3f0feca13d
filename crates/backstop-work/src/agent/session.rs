//! The session of an agent: which one is continued, and which one it says it has.

use super::definition::OutputDialect;
use super::dialect;
use backstop_core::Usage;
use std::io::Write;
use std::sync::Arc;

/// How much of the output is looked through for the id of a session: agents name it first.
const SEARCHED_BYTES_MAX: usize = 1 << 20;

/// A session that an agent is to continue.
#[derive(Debug, Clone, PartialEq)]
pub struct Continued {
    /// Its id, as the agent named it.
    pub id: String,
    /// What is known to have been used in it.
    pub used: Usage,
}

/// Is told the id of an agent's session as soon as the agent names it.
pub type OnSession = Arc<dyn Fn(&str) + Send + Sync>;

/// An output stream in which the agent names its session.
pub(super) struct NamesSession<W> {
    to: W,
    dialect: OutputDialect,
    /// The line that has not ended yet.
    open: Vec<u8>,
    /// How much may still be looked through; 0 once the session is known.
    left_bytes: usize,
    tell: OnSession,
}

impl<W> NamesSession<W> {
    pub(super) fn new(to: W, dialect: OutputDialect, tell: OnSession) -> Self {
        let left_bytes = if dialect == OutputDialect::Text { 0 } else { SEARCHED_BYTES_MAX };
        Self { to, dialect, open: Vec::new(), left_bytes, tell }
    }

    fn look(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            if self.left_bytes == 0 {
                return;
            }
            let taken = piece.len().min(self.left_bytes);
            self.left_bytes -= taken;
            self.open.extend_from_slice(&piece[..taken]);
            if piece.ends_with(b"\n") {
                if let Some(id) = dialect::session_of(self.dialect, &self.open) {
                    self.left_bytes = 0;
                    (self.tell)(&id);
                }
                self.open.clear();
            }
        }
    }
}

impl<W: Write> Write for NamesSession<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = self.to.write(bytes)?;
        self.look(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.to.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    fn told(dialect: OutputDialect, pieces: &[&str]) -> Vec<String> {
        let ids = Arc::new(Mutex::new(Vec::new()));
        let to = Arc::clone(&ids);
        let tell: OnSession = Arc::new(move |id| to.lock().unwrap().push(id.to_owned()));
        let mut stream = NamesSession::new(Vec::new(), dialect, tell);
        pieces.iter().for_each(|piece| stream.write_all(piece.as_bytes()).unwrap());
        assert_eq!(stream.to, pieces.concat().as_bytes());
        ids.lock().unwrap().clone()
    }

    #[test]
    fn the_first_session_that_each_dialect_names_is_told_once_however_it_is_cut() {
        use OutputDialect::*;
        let claude =
            ["warning: x\n{\"type\":\"system\",\"session", "_id\":\"s-1\"}\n{\"session_id\":\"s-2\"}\n"];
        assert_eq!(told(ClaudeJson, &claude), ["s-1"]);
        let codex = [
            "{\"type\":\"turn.started\",\"thread_id\":\"t-0\"}\n{\"type\":\"thread.started\",\"thread_id\":\"t-1\"}\n",
        ];
        assert_eq!(told(CodexJsonl, &codex), ["t-1"]);
        assert_eq!(told(OpencodeJsonl, &["{\"type\":\"text\",\"sessionID\":\"ses_1\"}\n"]), ["ses_1"]);
        assert!(told(Text, &["{\"session_id\":\"s-1\"}\n"]).is_empty());
    }

    #[test]
    fn what_would_be_an_option_a_path_or_worse_is_no_id() {
        let long = "x".repeat(300);
        for bad in ["--yolo", "", "a b", "../x", "a/b", "a\\u001b", "a\\nb", long.as_str()] {
            let line = format!("{{\"session_id\":\"{bad}\"}}\n");
            assert!(told(OutputDialect::ClaudeJson, &[&line]).is_empty(), "{bad}");
        }
        let endless = "x".repeat(3 << 20);
        assert!(told(OutputDialect::ClaudeJson, &[&endless, "\n{\"session_id\":\"s-1\"}\n"]).is_empty());
    }
}
