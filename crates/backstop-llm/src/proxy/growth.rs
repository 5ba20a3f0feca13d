//! The time that the readers of a stream take grows with the text and with nothing else, however
//! small the pieces are in which it arrives.

#[path = "../../../backstop-core/tests/support/linear.rs"]
mod linear;

use super::events::{StreamReader, split, whole_events};
use crate::{Api, Overflow};
use linear::assert_linear;

/// The largest text, in bytes.
const TEXT_BYTES_MAX: usize = 256 << 10;
/// How much arrives at once.
const PIECE_BYTES: usize = 64;

#[test]
fn twice_the_stream_takes_about_twice_as_long() {
    let stream = |api: Api| {
        move |text: &str| {
            let mut reader = StreamReader::new(api);
            let mut partial: Vec<u8> = Vec::new();
            for piece in text.as_bytes().chunks(PIECE_BYTES) {
                let seen = partial.len();
                partial.extend_from_slice(piece);
                let whole = whole_events(&partial, seen);
                if whole == 0 {
                    continue;
                }
                let after = partial.split_off(whole);
                for event in split(&std::mem::replace(&mut partial, after)) {
                    reader.read(event);
                }
            }
        }
    };
    let pieces = [
        "data: x\n",
        "data: {\"choices\":[{\"index\":1}]}\n",
        "data: {\"choices\":[{\"index\":1}]}\n\n",
        "data: [DONE]\n\n",
        "event: error\ndata: {\"error\":{}}\n\n",
        "data:",
        "\r\n",
        "\n",
        ": ping\n\n",
        "{\"error\":",
        "a",
    ];
    for piece in pieces {
        for api in [Api::Anthropic, Api::Chat, Api::Responses, Api::Gemini] {
            assert_linear(&format!("{api:?}"), piece, TEXT_BYTES_MAX, &stream(api));
        }
    }
    for piece in ["maximum context length is 8192 tokens ", "prompt is too long: 1 > ", "{\"", "9"] {
        assert_linear("overflow", piece, TEXT_BYTES_MAX, &|text| {
            let _ = Overflow::read(Some(400), text);
        });
    }
}
