//! Checks the sinks of notifications: whether they are configured correctly and, if asked, whether
//! their addresses can be reached.

use crate::aftermath::sender::with_secret;
use crate::project::Project;
use backstop_notify::{Resolved, Sink, SinkKind};
use backstop_report::{Check, CheckState};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

/// The name of these checks.
const NAME: &str = "sinks";
/// How long a connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Checks every sink; with `connect`, its address too. `is_found` says whether a program is found.
pub fn sinks(project: &Project, connect: bool, is_found: &dyn Fn(&str) -> bool) -> Vec<Check> {
    let (mut checks, mut good) = (Vec::new(), Vec::new());
    for (name, sink) in backstop_notify::sinks(&project.config) {
        let sink = match sink {
            Ok(sink) => sink,
            Err(error) => {
                checks.push(Check::bad(NAME, format!("{name}: {error}"), error.hint()));
                continue;
            }
        };
        match trouble(project, &sink, connect, is_found) {
            Some((state, says, hint)) => {
                checks.push(Check { name: NAME, state, says: format!("{name}: {says}"), hint: Some(hint) });
            }
            None => good.push(name),
        }
    }
    if !good.is_empty() {
        let how = if connect { "can be reached" } else { "configured" };
        let hint = "; `backstop notify test` sends a message";
        checks.push(Check::good(NAME, format!("{}: {how}{hint}", good.join(", "))));
    }
    checks
}

/// What is wrong with a sink, how bad that is, and what to do.
fn trouble(
    project: &Project,
    sink: &Sink,
    connect: bool,
    is_found: &dyn Fn(&str) -> bool,
) -> Option<(CheckState, String, String)> {
    let sink = match with_secret(project, sink.clone()) {
        Resolved::Sink(sink, _) => *sink,
        // It may be set where the commands run that send messages.
        Resolved::NoSecret { variable } => {
            let hint = format!("`export {variable}=…` where the commands run that send messages");
            return Some((CheckState::Note, format!("the variable {variable} is not set here"), hint));
        }
        Resolved::Gone(why) => {
            return Some((CheckState::Bad, why.line(200), "`backstop config check`".to_owned()));
        }
    };
    let address = match &sink.kind {
        SinkKind::Terminal => None,
        SinkKind::Webhook { address, .. } | SinkKind::GitHub { address, .. } => Some(address),
        SinkKind::Slack { address, .. } => address.as_ref(),
        SinkKind::Command { argv } => {
            let program = argv.first().filter(|program| !is_found(program))?;
            let says = format!("the program `{program}` is not found");
            return Some((CheckState::Bad, says, "install it, or correct its path".to_owned()));
        }
    };
    let address = address.filter(|_| connect)?;
    let error = reach(address.host().trim_matches(['[', ']']), address.port()).err()?;
    let says = format!("{} cannot be reached: {error}", address.place());
    Some((CheckState::Bad, says, "check the address, the network and the proxy".to_owned()))
}

/// Connects, and sends nothing.
fn reach(host: &str, port: u16) -> std::io::Result<()> {
    let mut last = std::io::Error::other("it has no address");
    for socket in (host, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&socket, CONNECT_TIMEOUT) {
            Ok(_) => return Ok(()),
            Err(error) => last = error,
        }
    }
    Err(last)
}
