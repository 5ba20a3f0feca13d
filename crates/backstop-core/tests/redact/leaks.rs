//! Every shape in every way in which it may be written.

use crate::planted::planted;
use backstop_core::Redactor;

/// A way in which a line may be written, and its name.
type Way = (&'static str, fn(&str) -> String);

const WAYS: &[Way] = &[
    ("as it is", str::to_owned),
    ("after a letter", |line| format!("x\n{line}")),
    ("as JSON", |line| serde_json::Value::from(line).to_string()),
    ("as JSON in a sentence", |line| {
        serde_json::json!({ "error": format!("it said:\n{line}\nend") }).to_string()
    }),
    ("as JSON in JSON", |line| {
        serde_json::Value::from(serde_json::json!({ "stderr": line }).to_string()).to_string()
    }),
    ("in colour", |line| format!("\u{1b}[31m{line}\u{1b}[0m")),
    ("with a colour for each word", |line| {
        line.split(' ').map(|word| format!("\u{1b}[1;32m{word}\u{1b}[0m")).collect::<Vec<_>>().join(" ")
    }),
    ("with a colour inside of everything", |line| {
        let colour = |(n, c): (usize, char)| if n % 5 == 4 { format!("{c}\u{1b}[0m") } else { c.to_string() };
        line.chars().enumerate().map(colour).collect()
    }),
    ("with signs as JSON numbers", |line| {
        let sign = |c: char| {
            if c.is_ascii_punctuation() && c != '\\' { format!("\\u{:04x}", c as u32) } else { c.to_string() }
        };
        line.chars().map(sign).collect()
    }),
    ("in a URL", |line| {
        let byte = |b: u8| {
            if b.is_ascii_alphanumeric() || b"-_.~".contains(&b) {
                char::from(b).to_string()
            } else {
                format!("%{b:02X}")
            }
        };
        line.bytes().map(byte).collect()
    }),
    ("as HTML", |line| {
        line.replace('&', "&amp;")
            .replace('<', "&lt;")
            .replace('>', "&gt;")
            .replace('"', "&quot;")
            .replace('\'', "&#39;")
    }),
    ("in a log", |line| format!("2030-01-01T00:00:00.000Z [error] worker-1: {line}")),
];

#[test]
fn no_shape_is_left_in_any_way_of_writing_it() {
    let redactor = Redactor::default();
    let (mut shapes, mut left) = (0, Vec::new());
    for seed in 0..3 {
        for one in planted(seed) {
            shapes += 1;
            for (way, write) in WAYS {
                let text = write(&one.line);
                let masked = redactor.redact(&text);
                // What is left is looked for as a reader would see it.
                let plain = readable(&masked);
                if let Some(secret) = one.secrets.iter().find(|secret| plain.contains(secret.as_str())) {
                    left.push(format!("{way}: {}: {secret}\n    {masked}", one.shape));
                }
            }
        }
    }
    assert!(shapes >= 3 * 200, "{shapes} shapes");
    assert!(left.is_empty(), "{} of {} are left:\n{}", left.len(), shapes * WAYS.len(), left.join("\n"));
}

fn readable(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let code = |from: usize, to: usize| {
            rest.get(from..to)
                .and_then(|digits| u32::from_str_radix(digits, 16).ok())
                .and_then(char::from_u32)
        };
        let (meaning, length) = match c {
            '\u{1b}' => (None, rest.find('m').map_or(1, |at| at + 1)),
            '\\' if rest[1..].starts_with('u') => (code(2, 6), 6),
            '%' if code(1, 3).is_some() => (code(1, 3), 3),
            '\\' => (None, 1),
            c => (Some(c), c.len_utf8()),
        };
        out.extend(meaning);
        rest = rest.get(length..).unwrap_or_default();
    }
    out
}

#[test]
fn a_shape_cut_anywhere_is_masked() {
    let redactor = Redactor::default();
    for (n, one) in planted(7).into_iter().enumerate() {
        let text = format!("before\n{}\nafter\n", one.line);
        let step = 1 + n % 13;
        let mut stream = redactor.stream();
        let mut out: String = text.as_bytes().chunks(step).map(|piece| stream.push(piece)).collect();
        out.push_str(&stream.finish());
        for secret in &one.secrets {
            assert!(!out.contains(secret.as_str()), "{}: {secret} in {out}", one.shape);
        }
        assert!(out.starts_with("before\n") && out.ends_with("after\n"), "{out}");
    }
}

#[test]
fn a_command_is_masked_word_by_word() {
    let redactor = Redactor::default();
    for one in planted(9) {
        // As a shell would split it; a shape in a quoted word is one word.
        let words: Vec<String> =
            one.line.split(' ').map(|word| word.trim_matches(['\'', '"']).to_owned()).collect();
        let is_command = [
            "curl",
            "mysql",
            "sshpass",
            "plink",
            "twine",
            "mosquitto_pub",
            "keytool",
            "jarsigner",
            "lftp",
            "7z",
            "unzip",
            "redis",
            "docker",
            "mongosh",
            "ldap",
            "openssl",
            "smbclient",
            "deploy",
            "aws ",
            "npm ",
            "vault",
            "cargo",
            "snyk",
            "ngrok",
            "bw ",
            "rabbitmqctl",
            "mc ",
            "nmcli",
            "wpa_",
            "pdftk",
            "nuget",
            "sqlplus",
            "doctl",
            "ssh-keygen",
            "useradd",
            "snmpwalk",
            "swaks",
            "kubectl",
            "oc ",
            "security",
            "etcdctl",
            "http ",
            "zip ",
            "gh ",
            "fly",
            "supabase",
            "doppler",
            "pulumi",
            "poetry",
            "uv ",
            "skopeo",
            "dotnet",
            "choco",
            "yarn",
            "git config",
            "signtool",
            "ansible-vault",
        ];
        if is_command.iter().any(|program| one.line.starts_with(program)) && !one.line.contains("-H") {
            let masked = redactor.redact_arguments(&words).join(" ");
            for secret in &one.secrets {
                assert!(!masked.contains(secret.as_str()), "{}: {masked}", one.shape);
            }
        }
    }
    let words = ["docker", "run", "-u", "1000:1000", "-p", "8080:80", "image"].map(str::to_owned);
    assert_eq!(redactor.redact_arguments(&words), words);
    for line in [
        "mkdir -p folder/inner",
        "vault login -method=oidc",
        "cargo login",
        "mc alias list",
        "kubectl create -f a.yaml",
        "ssh-keygen -t ed25519 -f key",
        "security find-identity -p codesigning",
    ] {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        assert_eq!(redactor.redact_arguments(&words), words);
    }
    for (line, secret) in [
        ("curl -H 'Authorization: swordfishes' x", "swordfishes"),
        ("curl -H 'Authorization: Bearer swordfish' x", "swordfish"),
        ("curl '-HX-Api-Key: swordfish' x", "swordfish"),
        ("wget '--header=X-Auth-Token: swordfish' x", "swordfish"),
        ("deploy --token=supersecretvalue", "supersecretvalue"),
        ("deploy --api-key=supersecretvalue", "supersecretvalue"),
        ("sh -c 'curl -su bob:swordfish x'", "swordfish"),
        ("netlify env:set NAME swordfish", "swordfish"),
        ("npx convex env set NAME swordfish", "swordfish"),
    ] {
        let words = split(line);
        let masked = redactor.redact_arguments(&words).join(" ");
        assert!(!masked.contains(secret), "{masked}");
    }
    for line in
        ["curl -H 'Accept: text/plain' x", "curl -H 'Authorization: $TOKEN' x", "deploy --cache-key=linux"]
    {
        let words = split(line);
        assert_eq!(redactor.redact_arguments(&words), words);
    }
    // What was typed is a secret whatever it looks like; in a sentence the same words are none.
    let typed = ["vault", "login", "swordfish"].map(str::to_owned);
    assert!(!redactor.redact_arguments(&typed).join(" ").contains("swordfish"));
    for text in ["the vault login page", "run cargo login first", "bw unlock failed: no session"] {
        assert_eq!(redactor.redact(text), text);
    }
}

/// The words of a line, as a shell reads those in single quotes.
fn split(line: &str) -> Vec<String> {
    let pieces = line.split('\'').enumerate();
    let words = pieces.flat_map(|(n, piece)| match n % 2 {
        0 => piece.split_whitespace().map(str::to_owned).collect(),
        _ => vec![piece.to_owned()],
    });
    words.collect()
}

/// Secrets that stand below their names.
const BELOW: &[&str] = &[
    "password: |\n  {}\n",
    "db:\n  password: |-\n      {}\n  user: bob\n",
    "client_secret: >-\n    {}\nuser: bob\n",
    "api_key: >\n  {}\n  {}\nuser: bob\n",
    "Password:\n{}\n",
    "Enter the password: \r\n{}\r\n",
    "access_token:\n  {}\n",
    "- name: DB_PASSWORD\n  value: {}\n",
    "  - name: API_TOKEN\n    value: \"{}\"\n",
    "    \"name\": \"DB_PASSWORD\",\n    \"value\": \"{}\"\n",
    "Content-Disposition: form-data; name=\"password\"\r\n\r\n{}\r\n",
    "kind: Secret\nmetadata:\n  name: x\ndata:\n  foo: {}\n---\n",
    "kind: Secret\nstringData:\n  foo: \"{}\"\n  user: |\n    {}\n---\n",
    "data:\n  foo: {}\nkind: Secret\nmetadata:\n  name: x\n---\n",
    "{\n  \"data\": {\n    \"foo\": \"{}\"\n  },\n  \"kind\": \"Secret\"\n}\n---\n",
    "{\"data\":{\"foo\":\"{}\"},\"kind\":\"Secret\"}\n---\n",
    "{\"kind\":\"Secret\",\"stringData\":{\"foo\":\"{}\"}}\n---\n",
    "kind: Secret\nstringData: {foo: {}}\n---\n",
    "kind: Secret\ndata: {foo: \"{}\", bar: '{}'}\n---\n",
    "stringData: {foo: {}}\nkind: Secret\n---\n",
    "{kind: Secret, stringData: {foo: {}}}\n---\n",
    "[\"password\"]=>\n  string(24) \"{}\"\n",
];

#[test]
fn the_words_of_a_wallet_are_masked() {
    const WORDS: &str = "abandon ability able about above absent absorb abstract absurd abuse access acid";
    let redactor = Redactor::default();
    for before in ["mnemonic: ", "MNEMONIC=\"", "Seed phrase: ", "your recovery phrase: "] {
        let masked = redactor.redact(&format!("{before}{WORDS}")).into_owned();
        assert_eq!(masked, format!("{before}[redacted]"));
    }
    let sentence =
        "the recovery phrase of this wallet was written down by its owner and then lost again, sadly";
    assert_eq!(redactor.redact(sentence), sentence);
}

#[test]
fn a_secret_below_its_name_is_masked() {
    let redactor = Redactor::default();
    let secret = ["c7KXb3Xq9Zt4", "Rb6Yh1Ns8Vd3"].concat();
    for below in BELOW {
        let text = format!("before\n{}after\n", below.replace("{}", &secret));
        for step in [1, 3, 7, 20, 1000] {
            let mut stream = redactor.stream();
            let mut out: String = text.as_bytes().chunks(step).map(|piece| stream.push(piece)).collect();
            out.push_str(&stream.finish());
            assert_eq!(out, redactor.redact(&text), "in pieces of {step}");
            assert!(!out.contains(&secret), "{out}");
            assert!(out.starts_with("before\n") && out.ends_with("after\n"), "{out}");
            assert_eq!(text.contains("user: bob"), out.contains("user: bob"), "{out}");
        }
        let quoted = serde_json::Value::from(text.as_str()).to_string();
        assert!(!redactor.redact(&quoted).contains(&secret), "{quoted}");
    }
    for harmless in [
        "secret:\n  secretName: my-tls-cert-1\n",
        "Password:\nLogin incorrect\n",
        "password:\n  required: true\n",
        "tokens:\n  - word-12\n",
        "Enter password:\nbob@host1:~$\n",
        "description: |\n  set the password1 first\n",
        "password: |\n  must be at least 8 characters\n",
        "api_key:\nsrc/main.rs\n",
    ] {
        assert_eq!(redactor.redact(harmless), harmless);
    }
}
