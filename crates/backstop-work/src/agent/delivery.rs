//! What an attempt delivers: its result, from the first place that has a valid one, or its answer
//! in words.

use super::attempt::Work;
use super::definition::OutputDialect;
use super::dialect::AgentOutput;
use super::envelope::Envelope;
use super::find::find_result;
use super::places::{Places, read_written};
use super::trouble::ResultTrouble;
use backstop_exec::Ended;
use std::path::Path;

/// How much of the end of an answer is kept.
const ANSWER_BYTES_MAX: usize = 256 << 10;

/// The answer of an agent, cut: what it wrote to the result file, else what it said.
pub(super) fn answer(places: &Places, output: &AgentOutput, dialect: OutputDialect) -> Option<String> {
    let written = read_written(places.scratch(), &places.result()).ok().flatten();
    let written = written.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let text = written.filter(|text| !text.trim().is_empty()).or_else(|| output.answer(dialect))?;
    let from = text.ceil_char_boundary(text.len().saturating_sub(ANSWER_BYTES_MAX));
    Some(text[from..].to_owned())
}

/// The envelope, from the first place that has a valid one; else what was wrong at the place that
/// came closest.
pub(super) fn envelope(
    work: &Work<'_>,
    places: &Places,
    output: &AgentOutput,
    ended: &Ended,
    key: &str,
) -> (Option<Envelope>, Option<ResultTrouble>) {
    let mut closest: Option<ResultTrouble> = None;
    let mut look = |found: Result<Envelope, ResultTrouble>| match found {
        Ok(envelope) => Some(envelope),
        Err(trouble) => {
            if closest.as_ref().is_none_or(|known| trouble.closeness() > known.closeness()) {
                closest = Some(trouble);
            }
            None
        }
    };
    let written = |path: &Path| match read_written(places.scratch(), path) {
        Ok(bytes) => bytes.map(|bytes| find_result(&bytes, key)),
        Err(trouble) => Some(Err(trouble)),
    };
    let mut envelope = written(&places.result()).and_then(&mut look);
    if let Work::Agent { agent, .. } = work
        && agent.acp.is_none()
    {
        let mut or = |found: &mut dyn FnMut() -> Option<Result<Envelope, ResultTrouble>>| {
            if envelope.is_none() {
                envelope = found().and_then(&mut look);
            }
        };
        or(&mut || output.structured.as_ref().map(|object| find_result(object.as_bytes(), key)));
        // What is wrong with that file is no fault of the result's: its words are heard too.
        or(&mut || {
            read_written(places.scratch(), &places.last_message())
                .ok()
                .flatten()
                .map(|bytes| find_result(&bytes, key))
        });
        or(&mut || Some(find_result(output.words.as_bytes(), key)));
        if agent.output == OutputDialect::Text {
            or(&mut || Some(find_result(&ended.stderr.end(usize::MAX), key)));
        }
    }
    // What an agent says over ACP is no result, and may not even be its own words.
    let is_missing = matches!(work, Work::Agent { agent, .. } if agent.acp.is_some());
    let trouble = closest.or(is_missing.then_some(ResultTrouble::Missing)).filter(|_| envelope.is_none());
    (envelope, trouble)
}
