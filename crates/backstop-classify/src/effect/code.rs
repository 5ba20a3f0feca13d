//! Programs of one line, `python -c '…'`: whether the code sends a request that can change
//! something, or mail. The pattern `@code` of a rule stands for such code.

use super::glob;

/// The pattern of a rule that stands for code that sends something.
pub(super) const PATTERN: &str = "@code";

/// What such code has in it. Methods whose names mean other things, too, need an address.
const SENDS: &[&str] = &[
    "*post(*",
    "*post_form(*",
    "*.put(*http*",
    "*.patch(*http*",
    "*.delete(*http*",
    "*urlopen(*data=*",
    "*urlopen(*method=*",
    "*method*post*",
    "*method*'put*",
    "*method*\"put*",
    "*method*patch*",
    "*method*delete*",
    "*.request(*post*",
    "*.request(*put*",
    "*.request(*delete*",
    "*http::post*",
    "*http::delete*",
    "*curlopt_post*",
    "*curlopt_customrequest*",
    "*smtplib*",
    "*net::smtp*",
    "*sendmail*",
    "*send_message(*",
    "mail(*",
    "* mail(*",
    "*;mail(*",
];

/// Whether code sends something.
pub(super) fn sends(code: &str) -> bool {
    SENDS.iter().any(|pattern| glob(pattern, code))
}
