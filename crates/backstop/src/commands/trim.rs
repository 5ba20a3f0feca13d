//! `backstop trim`.

use crate::error::{CliError, failed};
use crate::terminal;
use backstop_llm::{Api, Overflow, TrimError, TrimOptions};
use backstop_report::{to_json, trim_json, trim_line};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use std::io::Read;

/// The largest request that is read.
const REQUEST_BYTES_MAX: u64 = 256 << 20;

/// Make a model request smaller and leave it valid.
///
/// Reads the body of a request to Anthropic Messages, OpenAI Chat or Responses, or Gemini, and
/// prints a smaller one. The oldest turns go first, tool calls together with their results;
/// instructions, the first message of a person and the last turn stay.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  backstop trim < request.json > smaller.json\n  \
    backstop trim --error \"$(cat error.json)\" < request.json > smaller.json\n  \
    backstop trim --keep 30 --json < request.json")]
pub(crate) struct Trim {
    /// How much of the request to keep, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 50, value_parser = clap::value_parser!(u8).range(1..100))]
    pub(crate) keep: u8,
    /// The format of the request (default: by its members)
    #[arg(long, value_name = "API", value_parser = apis())]
    pub(crate) api: Option<Api>,
    /// The provider's error message: its numbers say how much has to go, and whether bytes are the
    /// cause
    #[arg(long, value_name = "TEXT")]
    pub(crate) error: Option<String>,
    /// The HTTP status of that error
    #[arg(long, value_name = "STATUS", value_parser = clap::value_parser!(u16).range(100..600), hide_short_help = true)]
    pub(crate) status: Option<u16>,
    /// Print JSON: what was done, and the request in it
    #[arg(long)]
    pub(crate) json: bool,
}

fn apis() -> impl TypedValueParser<Value = Api> {
    PossibleValuesParser::new(Api::ALL.map(Api::name)).map(|name| Api::from_name(&name).unwrap_or(Api::Chat))
}

pub(crate) fn run(args: &Trim) -> Result<(), CliError> {
    let mut body = Vec::new();
    let read = std::io::stdin().lock().take(REQUEST_BYTES_MAX + 1).read_to_end(&mut body);
    read.map_err(|error| CliError::read("standard input", error))?;
    if body.len() as u64 > REQUEST_BYTES_MAX {
        return Err(failed(format!("the request is larger than {} MiB", REQUEST_BYTES_MAX >> 20)));
    }
    let api = match args.api {
        Some(api) => api,
        None => {
            let value = serde_json::from_slice(&body);
            let value = value.map_err(|error| TrimError::NotJson(error.to_string()))?;
            Api::of_body(&value).ok_or(TrimError::NoConversation("messages"))?
        }
    };
    let overflow = args
        .error
        .as_deref()
        .map(|error| Overflow::read(args.status, error))
        .unwrap_or(Overflow { is_bytes: args.status == Some(413), ..Overflow::default() });
    let options = TrimOptions { keep_percent: args.keep, overflow };
    let trimmed = backstop_llm::trim(api, &body, &options)?;
    if args.json {
        let request = serde_json::from_slice(&trimmed.body).ok();
        return terminal::print(&format!("{}\n", to_json(&trim_json(&trimmed.report, api.name(), request))));
    }
    // Bytes as they were sent: nothing in a request is masked.
    let mut out = trimmed.body;
    out.push(b'\n');
    terminal::write_bytes(&out).map_err(CliError::output)?;
    terminal::say(&format!("{}\n", trim_line(&trimmed.report)));
    Ok(())
}
