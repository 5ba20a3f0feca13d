//! A service that was down: where it is, and whether it answers again.

use backstop_core::{Fault, Reason};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

/// How long one on this machine has: every command waits for it.
const ANSWER_MAX: Duration = Duration::from_millis(50);

/// The address of the service that was down, where the fault names it by number or as `localhost`.
/// Other names are not looked up: what an error message says is no reason to ask the network for
/// it.
pub fn service_address(fault: &Fault) -> Option<String> {
    if fault.reason != Reason::ServiceDown {
        return None;
    }
    let texts = fault.cause.iter().chain(fault.evidence.iter().map(|evidence| &evidence.text));
    texts.filter_map(|text| address_in(text.raw())).next().map(|address| address.to_string())
}

/// The first address in a text: `127.0.0.1:5432`, `[::1]:6379`, `localhost:3306`, `(127.0.0.1),
/// port 5432`.
fn address_in(text: &str) -> Option<SocketAddr> {
    let part = |c: char| !(c.is_ascii_alphanumeric() || ".:[]-_".contains(c));
    let words: Vec<&str> =
        text.split(part).map(|word| word.trim_matches(['.', ':'])).filter(|word| !word.is_empty()).collect();
    let mut ip: Option<IpAddr> = None;
    for (n, word) in words.iter().enumerate() {
        if let Some(address) = whole(word) {
            return Some(address);
        }
        ip = number(word).or(ip);
        if let (Some(ip), true) = (ip, word.eq_ignore_ascii_case("port")) {
            let port = words.get(n + 1).and_then(|word| word.parse().ok()).filter(|port| *port > 0);
            if let Some(port) = port {
                return Some(SocketAddr::new(ip, port));
            }
        }
    }
    None
}

fn whole(word: &str) -> Option<SocketAddr> {
    if let Ok(address) = word.parse::<SocketAddr>() {
        return Some(address).filter(|address| address.port() > 0);
    }
    let (host, port) = word.rsplit_once(':')?;
    let port = port.parse::<u16>().ok().filter(|port| *port > 0)?;
    host.eq_ignore_ascii_case("localhost").then(|| SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port))
}

fn number(word: &str) -> Option<IpAddr> {
    match word {
        word if word.eq_ignore_ascii_case("localhost") => Some(Ipv4Addr::LOCALHOST.into()),
        word => word.trim_matches(['[', ']']).parse().ok(),
    }
}

/// Whether something answers there now. Only this machine is asked: an error message is no reason
/// to knock at somebody else's.
pub fn answers(address: &str) -> Option<bool> {
    let address: SocketAddr =
        address.parse().ok().filter(|address: &SocketAddr| address.ip().is_loopback())?;
    Some(TcpStream::connect_timeout(&address, ANSWER_MAX).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_found_where_it_is_a_number() {
        for (text, want) in [
            ("connect ECONNREFUSED 127.0.0.1:5432", Some("127.0.0.1:5432")),
            ("Error: connect ECONNREFUSED ::1:5432 [::1]:6379", Some("[::1]:6379")),
            ("dial tcp 10.0.0.7:3306: connect: connection refused", Some("10.0.0.7:3306")),
            ("could not connect to localhost:27017.", Some("127.0.0.1:27017")),
            (
                "connection to server at \"localhost\" (127.0.0.1), port 5432 failed: Connection refused",
                Some("127.0.0.1:5432"),
            ),
            ("connection to server at db.internal, port 5432 failed", None),
            ("app.js:123: db.example.com:5432 refused at 12:30:45", None),
            ("127.0.0.1:0", None),
            ("", None),
        ] {
            let mut fault = Fault::new(Reason::ServiceDown);
            fault.cause = Some(text.into());
            assert_eq!(service_address(&fault).as_deref(), want, "{text}");
            fault.reason = Reason::Unknown;
            assert_eq!(service_address(&fault), None);
        }
    }

    #[test]
    fn who_listens_answers() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        assert_eq!(answers(&address), Some(true));
        drop(listener);
        assert_eq!(answers(&address), Some(false));
        assert_eq!(answers("192.0.2.1:9"), None, "only this machine is asked");
        assert_eq!(answers("nonsense"), None);
    }
}
