//! Fills in `${NAME}` and `${NAME:-default}` in settings.

/// A variable that a setting names and that is not set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the variable {name} is not set")]
pub struct Unset {
    /// The variable.
    pub name: String,
}

/// The text with its variables filled in. A variable without a value and without a default is an
/// error; `$NAME` and `$$` are plain text.
pub fn expand(text: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<String, Unset> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let Some(end) = from.find('}') else {
            rest = from;
            break;
        };
        let inner = &from[2..end];
        let (name, default) = match inner.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inner, None),
        };
        if !is_name(name) {
            out.push_str(&from[..=end]);
        } else {
            // As a shell does: an empty value counts as none where there is a default.
            let value = variable(name).filter(|value| default.is_none() || !value.is_empty());
            match (value, default) {
                (Some(value), _) => out.push_str(&value),
                (None, Some(default)) => out.push_str(default),
                (None, None) => return Err(Unset { name: name.to_owned() }),
            }
        }
        rest = &from[end + 1..];
    }
    out.push_str(rest);
    Ok(out)
}

/// The names of the variables that a text names.
pub fn variables(text: &str) -> Vec<String> {
    let found = text.split("${").skip(1).filter_map(|part| {
        let inner = part.split_once('}')?.0;
        let name = inner.split_once(":-").map_or(inner, |(name, _)| name);
        is_name(name).then(|| name.to_owned())
    });
    found.collect()
}

fn is_name(name: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    name.bytes().all(allowed) && name.bytes().next().is_some_and(|first| !first.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_filled_in() {
        let set = |name: &str| match name {
            "A" => Some("a".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        };
        for (text, want) in [
            ("x", "x"),
            ("${A}", "a"),
            ("-${A}-${A}", "-a-a"),
            ("${B:-b}", "b"),
            ("${A:-b}", "a"),
            ("${EMPTY:-b}", "b"),
            ("${EMPTY}", ""),
            ("${B:-}", ""),
            ("$A $$ ${", "$A $$ ${"),
            ("${1}${a b}", "${1}${a b}"),
        ] {
            assert_eq!(expand(text, &set).as_deref(), Ok(want), "{text}");
        }
        assert_eq!(expand("${B}", &set), Err(Unset { name: "B".to_owned() }));
        assert_eq!(variables("${B:-x} ${A} ${1}"), ["B", "A"]);
    }
}
