//! The session of an agent: which one is continued, and which one it says it has.

use super::definition::OutputDialect;
use super::dialect;
use backstop_core::Usage;
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

/// Looks for the session that an agent names, line by line of its output.
pub(super) struct SessionSearch {
    dialect: OutputDialect,
    /// How much may still be looked through; 0 once the session is known.
    left_bytes: usize,
    tell: OnSession,
}

impl SessionSearch {
    pub(super) fn new(dialect: OutputDialect, tell: OnSession) -> Self {
        let left_bytes = if dialect == OutputDialect::Text { 0 } else { SEARCHED_BYTES_MAX };
        Self { dialect, left_bytes, tell }
    }

    pub(super) fn line(&mut self, line: &[u8]) {
        if self.left_bytes == 0 {
            return;
        }
        self.left_bytes = self.left_bytes.saturating_sub(line.len());
        if let Some(id) = dialect::session_of(self.dialect, line) {
            self.left_bytes = 0;
            (self.tell)(&id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::lines::LineStream;
    use super::*;
    use std::io::Write;
    use std::sync::Mutex;

    fn told(dialect: OutputDialect, pieces: &[&str]) -> Vec<String> {
        let ids = Arc::new(Mutex::new(Vec::new()));
        let to = Arc::clone(&ids);
        let tell: OnSession = Arc::new(move |id| to.lock().unwrap().push(id.to_owned()));
        let mut search = SessionSearch::new(dialect, tell);
        let mut written = Vec::new();
        let mut stream = LineStream::new(&mut written, SEARCHED_BYTES_MAX, |line| search.line(line));
        pieces.iter().for_each(|piece| stream.write_all(piece.as_bytes()).unwrap());
        assert_eq!(written, pieces.concat().as_bytes());
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
