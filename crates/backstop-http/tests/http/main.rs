//! The client against real peers on the loopback interface: servers that answer, hang, drip, flood,
//! lie and hang up.
#![allow(clippy::unwrap_used)] // A peer that cannot do its part ends the test.

mod addresses;
mod bodies;
mod certificates;
mod http2;
mod keep_alive;
mod peers;
mod proxies;
mod resets;
mod size_limits;
mod time_limits;
