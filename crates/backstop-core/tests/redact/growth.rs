//! The time that masking takes grows with the text, whatever is in it.

use backstop_core::Redactor;
use std::time::Duration;

/// How long this thread has worked: other programs on the machine do not count.
fn cpu_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a value of ours, which the call fills in.
    let done = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    assert_eq!(done, 0, "the clock of this thread cannot be read");
    Duration::new(u64::try_from(time.tv_sec).unwrap(), u32::try_from(time.tv_nsec).unwrap())
}

/// The best of several timings.
fn best(mut work: impl FnMut()) -> Duration {
    (0..2)
        .map(|_| {
            let begun = cpu_time();
            work();
            cpu_time().saturating_sub(begun)
        })
        .min()
        .unwrap_or_default()
}

/// Eight times the text may take no more than this many times as long. Quadratic is 64.
const GROWTH_MAX: u32 = 24;

#[test]
fn eight_times_the_text_takes_about_eight_times_as_long() {
    let redactor = Redactor::new(["C4n4ry-Value", "aaaaaaaaaaaa"]);
    let pieces = [
        "-token",
        "--token ",
        "password",
        "password=",
        "password: ",
        "-----BEGIN ",
        "-----BEGIN PRIVATE KEY-----",
        "-----BEGIN RSA PRIVATE KEY-----\nx\n-----END ",
        "://",
        "://a:",
        "://u:a/",
        "@",
        "Authorization: ",
        "Bearer ",
        "Cookie: a=bcdef; ",
        "eyJ",
        "eyJaaaaaaaaaa.",
        "curl ",
        "curl -u ",
        "mysql -p",
        "\\",
        "\\\"",
        "\\u00",
        "%25",
        "%",
        "&amp;",
        "&",
        "\u{1b}[",
        "\u{1b}]",
        "\u{1b}",
        "\0",
        "key=",
        "api_key=\"",
        "<password>",
        "secret: '",
        "sig=",
        "a",
        "aaaaaaaaaaa",
        "C4n4ry-Valu",
        ":AA",
        "-us",
        "JQQJ99",
        "MTA",
        "pat",
        "aws config set secret_key ",
        "\\\n",
        "ghp_",
        "sk-",
        "hooks.slack.com/services/",
        "password: |\n",
        "password: |\n  swordfish7\n",
        " password: >-\n",
        "password:\n",
        "identified by '",
        "password '",
        "AKIAABCDEFGHIJKLMNOP ",
        "\u{200b}",
        "aaaa\n",
        "C4n4\n",
        "43 34 6e 34 ",
        "de ad be ef\n",
        "pw=",
    ];
    for piece in pieces {
        let text = |bytes: usize| piece.repeat(bytes / piece.len());
        let (small, large) = (text(16 << 10), text(128 << 10));
        let time = |text: &str| best(|| drop(redactor.redact(text)));
        // A timing that is off is taken again.
        let grows = (0..3).all(|_| time(&large) > time(&small).max(Duration::from_micros(20)) * GROWTH_MAX);
        assert!(!grows, "{piece:?}: {:?} and {:?}", time(&small), time(&large));
        let through = |text: &str| {
            best(|| {
                let mut stream = redactor.stream();
                for chunk in text.as_bytes().chunks(8192) {
                    stream.push(chunk);
                }
                stream.finish();
            })
        };
        // Shorter lines are not cut at all.
        let (small, large) = (text(128 << 10), text(512 << 10));
        let grows = (0..3).all(|_| through(&large) > through(&small) * GROWTH_MAX / 2);
        assert!(!grows, "in pieces: {piece:?}: {:?} and {:?}", through(&small), through(&large));
    }
}
