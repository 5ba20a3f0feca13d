//! The time that masking takes grows with the text, whatever is in it.

use backstop_core::Redactor;

#[path = "../support/linear.rs"]
mod linear;

use linear::assert_linear;

#[test]
fn twice_the_text_takes_about_twice_as_long() {
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
        "kind: Secret\n",
        "kind: Secret\ndata:\n  a: ",
        "data:\n",
        "  data:\n  kind: Secret\n",
        "{\"data\":{\"a\":\"b\"},\"kind\":\"Secret\"}",
        "\"data\":{",
        "secrets:[",
        "passwords: {\"a\":",
        "token is the ",
        "secret of ",
        "set API_TOKEN ",
        "\"name\":\"token\",",
        "name=\"password\"\n\n",
        "[\"token\", ",
        "AAAA",
        "bob:a@tcp(",
        "jdbc:oracle:thin:",
        "a:5432:",
        "/hooks/",
        "A3-A-",
        "_mmk",
        "curl -H 'X-Key: ",
        "fly secrets set A=",
        "pat.",
        "\"d\":\"",
        "\"kty\":\"d\":\"aaaaaaaaaaaaaaaaaaaaaa\"",
        "stringData: {a: b",
        "{kind: Secret, data: {",
        "$6$",
        "mnemonic a ",
        "aa_aB3aB3aB3aB3aB3aB3aB3aB3aB3aB3aB3aB3 ",
        "aB3aB3aB3aB3aB3aB3aB3aB3aB3aB3aB3aB3",
        "\"password\"=>\n",
        "<password>",
        "redis-cli AUTH ",
        "rclone a b ",
        "echo a | sudo -S ",
        "sudo -S <<< ",
        "| sudo -S ",
        "echo a b c password-stdin\n",
        "echo ",
    ];
    for piece in pieces {
        assert_linear("redactor", piece, 64 << 10, &|text| drop(redactor.redact(text)));
        // Shorter lines are not cut at all.
        assert_linear("redactor in pieces", piece, 256 << 10, &|text| {
            let mut stream = redactor.stream();
            for chunk in text.as_bytes().chunks(8192) {
                stream.push(chunk);
            }
            stream.finish();
        });
    }
}
