//! The address of a trace collector: the part before `/v1/traces`.

use backstop_http::{Address, AddressError};

/// The default port of OTLP over plain HTTP.
const OTLP_PORT: u16 = 4318;

/// Parses the address of a collector. A query is refused, because a path is appended to the
/// address.
pub(crate) fn parse_endpoint(text: &str) -> Result<Address, AddressError> {
    let address = Address::parse(text)?;
    if address.query().is_some() {
        return Err(AddressError::Character);
    }
    // An https collector usually listens on the default port, behind a proxy.
    Ok(if address.is_https() || address.has_port() { address } else { address.with_port(OTLP_PORT) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_read() {
        for (text, want) in [
            ("http://127.0.0.1:4318", "http://127.0.0.1:4318/"),
            ("HTTP://collector/", "http://collector:4318/"),
            ("http://[::1]:9/otlp/", "http://[::1]:9/otlp/"),
            ("http://[::1]", "http://[::1]:4318/"),
            ("https://otlp.example.com/v2", "https://otlp.example.com/v2"),
        ] {
            assert_eq!(parse_endpoint(text).unwrap().whole(), want, "{text}");
        }
        for text in ["", "127.0.0.1:4318", "http://", "http://x:0", "http://me:pw@x", "http://x?y", "ftp://x"]
        {
            assert!(parse_endpoint(text).is_err(), "{text}");
        }
    }
}
