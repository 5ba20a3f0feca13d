//! Server-sent events, as far as MCP uses them: the data of each event.

use crate::jsonrpc::MESSAGE_BYTES_MAX;

/// Cuts a stream into the data of its events.
#[derive(Debug, Default)]
pub(crate) struct Events {
    line: Vec<u8>,
    data: Vec<u8>,
    too_long: bool,
}

impl Events {
    /// Takes bytes, and calls `take` with the data of each event that is complete now.
    pub(crate) fn push(&mut self, bytes: &[u8], take: &mut impl FnMut(&[u8])) {
        for byte in bytes {
            match byte {
                b'\n' => self.end_line(take),
                b'\r' => {}
                _ if self.line.len() > MESSAGE_BYTES_MAX => self.too_long = true,
                byte => self.line.push(*byte),
            }
        }
    }

    /// How much memory it has, in bytes.
    #[cfg(test)]
    pub(crate) fn held(&self) -> usize {
        self.line.capacity() + self.data.capacity()
    }

    fn end_line(&mut self, take: &mut impl FnMut(&[u8])) {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() {
            let data = std::mem::take(&mut self.data);
            if !data.is_empty() && !self.too_long {
                take(&data);
            }
            self.too_long = false;
        } else if let Some(rest) = line.strip_prefix(b"data:") {
            let rest = rest.strip_prefix(b" ").unwrap_or(rest);
            if self.data.len() + rest.len() > MESSAGE_BYTES_MAX {
                self.too_long = true;
                self.data = Vec::new();
            } else if !self.too_long {
                if !self.data.is_empty() {
                    self.data.push(b'\n');
                }
                self.data.extend_from_slice(rest);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_found_however_they_are_cut() {
        let stream = b": hello\r\n\r\nevent: message\r\nid: 1\r\ndata: {\"a\":\r\ndata: 1}\r\n\r\ndata:x\n\n\ndata: y\n";
        for size in 1..stream.len() {
            let (mut events, mut seen) = (Events::default(), Vec::new());
            for piece in stream.chunks(size) {
                events.push(piece, &mut |data| seen.push(String::from_utf8_lossy(data).into_owned()));
            }
            assert_eq!(seen, ["{\"a\":\n1}", "x"], "{size}");
        }
    }
}
