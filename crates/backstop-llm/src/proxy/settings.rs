//! From the settings of a project to those of a proxy.

use super::{Budgets, Price, Prices, ProxySettings, Upstream, UpstreamError};
use backstop_config::{Config, LlmUpstreamSettings};
use backstop_core::{ErrorKind, HintedError, Name};
use backstop_runtime::expand::{Unset, expand};
use std::collections::BTreeMap;

/// Why the settings make no proxy.
#[derive(Debug, thiserror::Error)]
pub enum ProxySettingsError {
    /// An upstream cannot be used.
    #[error(transparent)]
    Upstream(#[from] UpstreamError),
    /// An upstream that is not known by itself has no address.
    #[error("upstream `{0}` has no address")]
    NoAddress(String),
    /// A header names a variable that is not set.
    #[error("a header of upstream `{upstream}`: {error}")]
    Header {
        /// The upstream.
        upstream: String,
        /// What is missing.
        error: Unset,
    },
    /// A header cannot be sent.
    #[error("upstream `{upstream}`: {error}")]
    BadHeader {
        /// The upstream.
        upstream: String,
        /// What is wrong.
        error: backstop_http::HeaderError,
    },
    /// An entry of `llm.fallback` or `llm.prices` is not understood.
    #[error("`{entry}` in `{key}` is not understood")]
    Entry {
        /// The key.
        key: &'static str,
        /// The entry.
        entry: String,
    },
    /// A budget has no valid name.
    #[error("`{0}` is no name of a budget")]
    Budget(String),
}

impl ProxySettingsError {
    /// What to write instead.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Upstream(_) | Self::NoAddress(_) => {
                "an upstream is a name and an origin: --upstream local=http://127.0.0.1:8000"
            }
            Self::Header { .. } => "set the variable, or leave the header out of `backstop.toml`",
            Self::BadHeader { error, .. } => error.hint(),
            Self::Entry { key: "llm.prices", .. } => {
                "write MODEL=INPUT/OUTPUT, in US dollars for a million tokens: gpt-5=1.25/10"
            }
            Self::Entry { .. } => "write MODEL=OTHER: claude-opus-4-1=claude-sonnet-4-5",
            Self::Budget(_) => "`backstop budget set NAME UNITS` makes one",
        }
    }
}

impl HintedError for ProxySettingsError {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Usage
    }

    fn hints(&self) -> Vec<String> {
        vec![self.hint().to_owned()]
    }
}

impl ProxySettings {
    /// As the settings say; `named` are upstreams by name and origin, which replace those of the
    /// settings. `variable` gives the value of an environment variable.
    pub fn read(
        config: &Config,
        named: &[(String, String)],
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, ProxySettingsError> {
        let written = config.llm();
        let upstreams = upstreams(&written.upstreams, named, &|upstream, settings| {
            equipped(upstream, settings, variable)
        })?;
        let budget = |name: Option<String>| {
            name.map(|name| name.parse::<Name>().map_err(|_| ProxySettingsError::Budget(name))).transpose()
        };
        let usual = Self::default();
        Ok(Self {
            upstreams,
            deadline: written.deadline.unwrap_or(usual.deadline),
            idle: written.idle.unwrap_or(usual.idle),
            body_bytes_max: usize::try_from(written.body_max).unwrap_or(usize::MAX),
            cache: written.cache,
            fallbacks: pairs("llm.fallback", &written.fallback)?.into_iter().collect(),
            prices: prices(&written.prices)?,
            budgets: Budgets {
                requests: budget(written.budget)?,
                tokens: budget(written.token_budget)?,
                cents: budget(written.cent_budget)?,
            },
            token: None,
        })
    }
}

/// The upstreams of a project by name and origin, without their headers and limits.
pub fn upstream_origins(
    config: &Config,
    named: &[(String, String)],
) -> Result<Vec<Upstream>, ProxySettingsError> {
    upstreams(&config.llm().upstreams, named, &|upstream, _| Ok(upstream))
}

/// Gives an upstream what the settings say about it.
type Equip<'e> = dyn Fn(Upstream, &LlmUpstreamSettings) -> Result<Upstream, ProxySettingsError> + 'e;

fn upstreams(
    written: &BTreeMap<String, LlmUpstreamSettings>,
    named: &[(String, String)],
    equip: &Equip<'_>,
) -> Result<Vec<Upstream>, ProxySettingsError> {
    let mut upstreams = Upstream::usual();
    for (name, settings) in written {
        let usual = upstreams.iter().position(|upstream| upstream.name.as_str() == name);
        let upstream = match (&settings.url, usual) {
            (Some(url), _) => Upstream::new(name, url)?,
            (None, Some(at)) => upstreams[at].clone(),
            (None, None) => return Err(ProxySettingsError::NoAddress(name.clone())),
        };
        replace(&mut upstreams, equip(upstream, settings)?);
    }
    for (name, origin) in named {
        let upstream = Upstream::new(name, origin)?;
        let is_same_place = |other: &&Upstream| {
            other.name == upstream.name && other.origin.place() == upstream.origin.place()
        };
        if upstreams.iter().any(|other| is_same_place(&other)) {
            continue;
        }
        // Headers of the settings are credentials for another host: they do not come along.
        let settings = written
            .get(name)
            .map(|settings| LlmUpstreamSettings { headers: BTreeMap::new(), ..settings.clone() });
        let upstream = settings.map_or(Ok(upstream.clone()), |settings| equip(upstream, &settings))?;
        replace(&mut upstreams, upstream);
    }
    Ok(upstreams)
}

fn replace(upstreams: &mut Vec<Upstream>, upstream: Upstream) {
    upstreams.retain(|other| other.name != upstream.name);
    upstreams.push(upstream);
}

fn equipped(
    mut upstream: Upstream,
    settings: &LlmUpstreamSettings,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Upstream, ProxySettingsError> {
    let name = upstream.name.to_string();
    for (header, value) in &settings.headers {
        let value = expand(value, variable)
            .map_err(|error| ProxySettingsError::Header { upstream: name.clone(), error })?;
        let added = upstream.headers.add_secret(header, value);
        added.map_err(|error| ProxySettingsError::BadHeader { upstream: name.clone(), error })?;
    }
    Ok(upstream.concurrency(settings.concurrency))
}

fn pairs(key: &'static str, entries: &[String]) -> Result<Vec<(String, String)>, ProxySettingsError> {
    let pair = |entry: &String| match entry.split_once('=') {
        Some((model, value)) if !model.trim().is_empty() && !value.trim().is_empty() => {
            Ok((model.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err(ProxySettingsError::Entry { key, entry: entry.clone() }),
    };
    entries.iter().map(pair).collect()
}

fn prices(entries: &[String]) -> Result<Prices, ProxySettingsError> {
    let millionths = |text: &str| {
        let dollars: f64 = text.trim().parse().ok()?;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        // Checked to be small and positive.
        (0.0..1e6).contains(&dollars).then(|| (dollars * 1e6).round() as u64)
    };
    let mut prices = Prices::default();
    for (model, price) in pairs("llm.prices", entries)? {
        let both =
            price.split_once('/').and_then(|(input, output)| Some((millionths(input)?, millionths(output)?)));
        let Some((input, output)) = both else {
            return Err(ProxySettingsError::Entry { key: "llm.prices", entry: format!("{model}={price}") });
        };
        prices.0.insert(model, Price { input, output });
    }
    Ok(prices)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_the_settings_go_to_no_other_host() {
        let headers = BTreeMap::from([("authorization".to_owned(), "Bearer x".to_owned())]);
        let settings = LlmUpstreamSettings { url: None, concurrency: Some(2), headers };
        let written = BTreeMap::from([("openai".to_owned(), settings)]);
        let headers = |origin: &str| {
            let named = [("openai".to_owned(), origin.to_owned())];
            let equip =
                |upstream: Upstream, settings: &LlmUpstreamSettings| equipped(upstream, settings, &|_| None);
            let all = upstreams(&written, &named, &equip).unwrap();
            let openai = all.iter().find(|upstream| upstream.name.as_str() == "openai").unwrap();
            assert!(openai.slots.is_some());
            openai.headers.iter().count()
        };
        assert_eq!((headers("https://api.openai.com"), headers("https://elsewhere.example")), (1, 0));
    }

    #[test]
    fn prices_and_fallbacks_are_pairs() {
        let list = |all: &[&str]| all.iter().map(ToString::to_string).collect::<Vec<String>>();
        let read = prices(&list(&["gpt-5=1.25/10", "local = 0/0"])).unwrap();
        assert_eq!(read.0["gpt-5"], Price { input: 1_250_000, output: 10_000_000 });
        for bad in ["gpt-5", "=1/2", "x=1", "x=a/b", "x=-1/2", "x=1e9/2"] {
            assert!(prices(&list(&[bad])).is_err(), "{bad}");
        }
        assert_eq!(pairs("llm.fallback", &list(&["a=b"])).unwrap(), [("a".to_owned(), "b".to_owned())]);
    }
}
