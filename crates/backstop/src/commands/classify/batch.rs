//! `backstop classify --batch`: one JSON object a line in, one a line out.

use crate::error::{CliError, failed};
use crate::{process, terminal};
use backstop_classify::{Classifier, read_row};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read};

/// The longest line that is read; a longer one is answered with an error.
const LINE_BYTES_MAX: u64 = 8 << 20;
pub(crate) fn run(classifier: &Classifier, input: impl Read) -> Result<(), CliError> {
    let mut input = BufReader::with_capacity(256 << 10, input);
    let mut line = Vec::new();
    let mut bad = 0;
    for number in 1u64.. {
        line.clear();
        let read = (&mut input).take(LINE_BYTES_MAX).read_until(b'\n', &mut line);
        let read = read.map_err(|error| CliError::read("standard input", error))?;
        if read == 0 {
            break;
        }
        let cut = read as u64 == LINE_BYTES_MAX && !line.ends_with(b"\n");
        if cut {
            skip_line(&mut input).map_err(|error| CliError::read("standard input", error))?;
        } else if line.trim_ascii().is_empty() {
            continue;
        }
        let answer = if cut {
            Err(format!("the line has more than {LINE_BYTES_MAX} bytes"))
        } else {
            answer(classifier, &line)
        };
        let answer = answer.unwrap_or_else(|error| {
            bad += 1;
            json!({ "line": number, "error": terminal::redactor().redact(&error) })
        });
        terminal::print(&format!("{}\n", backstop_report::to_json(&answer)))?;
    }
    if bad > 0 {
        Err(failed(format!("{bad} of the batch's lines could not be read; each is answered with an error"))
            .hint("look for answers with an `error` field"))
    } else {
        Ok(())
    }
}

fn skip_line(input: &mut impl BufRead) -> std::io::Result<()> {
    loop {
        let buffer = input.fill_buf()?;
        if buffer.is_empty() {
            return Ok(());
        }
        let end = buffer.iter().position(|b| *b == b'\n');
        let used = end.map_or(buffer.len(), |n| n + 1);
        input.consume(used);
        if end.is_some() {
            return Ok(());
        }
    }
}

fn answer(classifier: &Classifier, line: &[u8]) -> Result<Value, String> {
    let (id, signal) = read_row(line, process::now())?;
    let mut answer = backstop_report::fault_json(classifier.classify(&signal).as_ref());
    if let Value::Object(fields) = &mut answer {
        fields.insert("id".to_owned(), id);
    }
    Ok(answer)
}
