//! What is looked for first: the letters with which a secret, or what announces one, begins. A
//! table of all groups of three characters tells where any of them may be, so that the rest of a
//! text is passed over quickly. It is computed at compile time: starting costs nothing.

use super::inside::Shape;
use super::names::Word;
use super::tokens::TOKENS;
use std::ops::Range;

/// What an anchor announces.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    /// A token of the table, by its index.
    Token(usize),
    /// A signed token of three parts.
    Jwt,
    /// A token that is known by something in its middle.
    Inside(Shape),
    /// A name that says that its value is a secret.
    Name(Word),
    /// `IDENTIFIED …` of SQL.
    Sql,
    /// The scheme of an `Authorization` header.
    Scheme,
    /// `://`, after which there may be a password.
    Url,
    /// An address that is a secret from here on.
    SecretPath,
    /// A program whose arguments may be secrets.
    Program,
    /// A program or a flag of one that reads a secret from its standard input.
    Reader,
}

/// Something to look for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Anchor {
    pub(super) text: &'static str,
    pub(super) kind: Kind,
}

impl Anchor {
    const fn ignores_case(&self) -> bool {
        matches!(self.kind, Kind::Name(_) | Kind::Sql | Kind::Scheme | Kind::SecretPath)
    }
}

const fn anchor(text: &'static str, kind: Kind) -> Anchor {
    Anchor { text, kind }
}

const OTHERS: &[Anchor] = &[
    anchor("eyJ", Kind::Jwt),
    anchor("://", Kind::Url),
    anchor(":AA", Kind::Inside(Shape::Telegram)),
    anchor("-us", Kind::Inside(Shape::Mailchimp)),
    anchor("7Q~", Kind::Inside(Shape::AzureClient)),
    anchor("8Q~", Kind::Inside(Shape::AzureClient)),
    anchor("JQQJ99", Kind::Inside(Shape::AzureKey)),
    anchor("AZDO", Kind::Inside(Shape::AzureKey)),
    anchor("+ASt", Kind::Inside(Shape::AzureKey)),
    anchor("+ACDb", Kind::Inside(Shape::AzureKey)),
    anchor("+AEh", Kind::Inside(Shape::AzureKey)),
    anchor("AzCa", Kind::Inside(Shape::AzureKey)),
    anchor("AzSe", Kind::Inside(Shape::AzureKey)),
    anchor(".atlasv1.", Kind::Inside(Shape::Terraform)),
    anchor("NRAL", Kind::Inside(Shape::NewRelic)),
    anchor("pat", Kind::Inside(Shape::Airtable)),
    anchor("pat.", Kind::Inside(Shape::Harness)),
    anchor("sat.", Kind::Inside(Shape::Harness)),
    anchor("A3-", Kind::Inside(Shape::OnePassword)),
    anchor("_mmk", Kind::Inside(Shape::MaxMind)),
    anchor("AAAAAAAAAAAAAAAAAAAA", Kind::Inside(Shape::Twitter)),
    anchor("/webhooks/", Kind::Inside(Shape::Webhook)),
    anchor("/hooks/", Kind::Inside(Shape::Mattermost)),
    anchor("@tcp(", Kind::Inside(Shape::GoAddress)),
    anchor("@unix(", Kind::Inside(Shape::GoAddress)),
    anchor("jdbc:oracle:thin:", Kind::Inside(Shape::OracleAddress)),
    anchor("jdbc:oracle:oci:", Kind::Inside(Shape::OracleAddress)),
    anchor(":5432:", Kind::Inside(Shape::Pgpass)),
    anchor(":5433:", Kind::Inside(Shape::Pgpass)),
    anchor(":6432:", Kind::Inside(Shape::Pgpass)),
    anchor("access_token$", Kind::Inside(Shape::Braintree)),
    anchor("$2a$", Kind::Inside(Shape::Crypt)),
    anchor("$2b$", Kind::Inside(Shape::Crypt)),
    anchor("$2y$", Kind::Inside(Shape::Crypt)),
    anchor("$1$", Kind::Inside(Shape::Crypt)),
    anchor("$5$", Kind::Inside(Shape::Crypt)),
    anchor("$6$", Kind::Inside(Shape::Crypt)),
    anchor("$y$", Kind::Inside(Shape::Crypt)),
    anchor("$apr1$", Kind::Inside(Shape::Crypt)),
    anchor("$argon2", Kind::Inside(Shape::Crypt)),
    anchor("$scrypt$", Kind::Inside(Shape::Crypt)),
    anchor("$pbkdf2", Kind::Inside(Shape::Crypt)),
    anchor("nemonic", Kind::Inside(Shape::Mnemonic)),
    anchor("NEMONIC", Kind::Inside(Shape::Mnemonic)),
    anchor("eed phrase", Kind::Inside(Shape::Mnemonic)),
    anchor("ecovery phrase", Kind::Inside(Shape::Mnemonic)),
    anchor("\"d\"", Kind::Inside(Shape::JsonKey)),
    anchor("\"k\"", Kind::Inside(Shape::JsonKey)),
    anchor("\"p\"", Kind::Inside(Shape::JsonKey)),
    anchor("\"q\"", Kind::Inside(Shape::JsonKey)),
    anchor("\"dp\"", Kind::Inside(Shape::JsonKey)),
    anchor("\"dq\"", Kind::Inside(Shape::JsonKey)),
    anchor("\"qi\"", Kind::Inside(Shape::JsonKey)),
    // The first digits of a bot's number, in base64.
    anchor("MT", Kind::Inside(Shape::Discord)),
    anchor("Mj", Kind::Inside(Shape::Discord)),
    anchor("Mz", Kind::Inside(Shape::Discord)),
    anchor("ND", Kind::Inside(Shape::Discord)),
    anchor("NT", Kind::Inside(Shape::Discord)),
    anchor("Nj", Kind::Inside(Shape::Discord)),
    anchor("Nz", Kind::Inside(Shape::Discord)),
    anchor("OD", Kind::Inside(Shape::Discord)),
    anchor("OT", Kind::Inside(Shape::Discord)),
    anchor("password", Kind::Name(Word::Password)),
    anchor("passwd", Kind::Name(Word::Password)),
    anchor("passphrase", Kind::Name(Word::Password)),
    anchor("passcode", Kind::Name(Word::Password)),
    anchor("passwort", Kind::Name(Word::Password)),
    anchor("wachtwoord", Kind::Name(Word::Password)),
    anchor("mot de passe", Kind::Name(Word::Password)),
    anchor("contrase\u{f1}a", Kind::Name(Word::Password)),
    anchor("senha", Kind::Name(Word::Password)),
    anchor("pwd", Kind::Name(Word::Password)),
    anchor("psk", Kind::Name(Word::Pw)),
    anchor("pass", Kind::Name(Word::Pass)),
    anchor("pw", Kind::Name(Word::Pw)),
    anchor("secret", Kind::Name(Word::Secret)),
    anchor("token", Kind::Name(Word::Token)),
    anchor("jwt", Kind::Name(Word::Token)),
    anchor("credential", Kind::Name(Word::Token)),
    anchor("apikey", Kind::Name(Word::Token)),
    anchor("sessid", Kind::Name(Word::Token)),
    anchor("sessionid", Kind::Name(Word::Token)),
    anchor("_session", Kind::Name(Word::Token)),
    anchor(".sid", Kind::Name(Word::Token)),
    anchor("bearer", Kind::Name(Word::Weak)),
    anchor("_access", Kind::Name(Word::Weak)),
    anchor("_private", Kind::Name(Word::Weak)),
    anchor("_salt", Kind::Name(Word::Weak)),
    anchor("key", Kind::Name(Word::Key)),
    anchor("auth", Kind::Name(Word::Auth)),
    anchor("authorization", Kind::Name(Word::Authorization)),
    anchor("cookie", Kind::Name(Word::Cookie)),
    anchor("securestring", Kind::Name(Word::Secret)),
    anchor("creds", Kind::Name(Word::Token)),
    anchor("sig=", Kind::Name(Word::Signature)),
    anchor("signature", Kind::Name(Word::Signature)),
    anchor("tkn=", Kind::Name(Word::Signature)),
    anchor("code=", Kind::Name(Word::Signature)),
    anchor("identified ", Kind::Sql),
    anchor("bearer ", Kind::Scheme),
    anchor("basic ", Kind::Scheme),
    anchor("ssws ", Kind::Scheme),
    anchor("apikey ", Kind::Scheme),
    anchor("geniekey ", Kind::Scheme),
    anchor("flyv1 ", Kind::Scheme),
    anchor("hooks.slack.com/services/", Kind::SecretPath),
    anchor("hooks.slack.com/workflows/", Kind::SecretPath),
    anchor("hooks.slack.com/triggers/", Kind::SecretPath),
    anchor("webhook.office.com/webhookb2/", Kind::SecretPath),
    anchor("outlook.office.com/webhook/", Kind::SecretPath),
    anchor("outlook.office365.com/webhook/", Kind::SecretPath),
    anchor("hooks.airtable.com/workflows/v1/genericWebhook/", Kind::SecretPath),
    anchor("qyapi.weixin.qq.com/cgi-bin/webhook/send?key=", Kind::SecretPath),
    anchor("hooks.zapier.com/hooks/catch/", Kind::SecretPath),
    anchor("open.feishu.cn/open-apis/bot/v2/hook/", Kind::SecretPath),
    anchor("open.larksuite.com/open-apis/bot/v2/hook/", Kind::SecretPath),
    anchor("api.telegram.org/bot", Kind::SecretPath),
    anchor(".make.com/", Kind::SecretPath),
    anchor("events.pagerduty.com/integration/", Kind::SecretPath),
    anchor("/with/key/", Kind::SecretPath),
    anchor("curl", Kind::Program),
    anchor("mysql", Kind::Program),
    anchor("mariadb", Kind::Program),
    anchor("mycli", Kind::Program),
    anchor("sshpass", Kind::Program),
    anchor("pscp", Kind::Program),
    anchor("plink", Kind::Program),
    anchor("psftp", Kind::Program),
    anchor("mqtt", Kind::Program),
    anchor("twine", Kind::Program),
    anchor("mosquitto_", Kind::Program),
    anchor("keytool", Kind::Program),
    anchor("jarsigner", Kind::Program),
    anchor("lftp", Kind::Program),
    anchor("7z", Kind::Program),
    anchor("zip", Kind::Program),
    anchor("unzip", Kind::Program),
    anchor("rar", Kind::Program),
    anchor("unrar", Kind::Program),
    anchor("redis-cli", Kind::Program),
    anchor("valkey-cli", Kind::Program),
    anchor("mongo", Kind::Program),
    anchor("sqlcmd", Kind::Program),
    anchor("bcp", Kind::Program),
    anchor("cqlsh", Kind::Program),
    anchor("ldap", Kind::Program),
    anchor("smbclient", Kind::Program),
    anchor("docker", Kind::Program),
    anchor("podman", Kind::Program),
    anchor("nerdctl", Kind::Program),
    anchor("helm", Kind::Program),
    anchor("oras", Kind::Program),
    anchor("crane", Kind::Program),
    anchor("skopeo", Kind::Program),
    anchor("openssl", Kind::Program),
    anchor("htpasswd", Kind::Program),
    anchor("ipmitool", Kind::Program),
    anchor("rabbitmqadmin", Kind::Program),
    anchor("xfreerdp", Kind::Program),
    anchor("influx", Kind::Program),
    anchor("aws", Kind::Program),
    anchor("npm", Kind::Program),
    anchor("az ", Kind::Program),
    anchor("vault login", Kind::Program),
    anchor("vault unwrap", Kind::Program),
    anchor("vault operator", Kind::Program),
    anchor("vault token", Kind::Program),
    anchor("bao login", Kind::Program),
    anchor("cargo login", Kind::Program),
    anchor("snyk auth", Kind::Program),
    anchor("ngrok authtoken", Kind::Program),
    anchor("ngrok config", Kind::Program),
    anchor("rabbitmqctl", Kind::Program),
    anchor("mc alias", Kind::Program),
    anchor("nmcli", Kind::Program),
    anchor("wpa_passphrase", Kind::Program),
    anchor("iwconfig", Kind::Program),
    anchor("isql ", Kind::Program),
    anchor("pdftk", Kind::Program),
    anchor("composer config", Kind::Program),
    anchor("nuget push", Kind::Program),
    anchor("sqlplus", Kind::Program),
    anchor("sqlldr", Kind::Program),
    anchor("expdp", Kind::Program),
    anchor("impdp", Kind::Program),
    anchor("doctl", Kind::Program),
    anchor("glab", Kind::Program),
    anchor("codecov", Kind::Program),
    anchor("ssh-keygen", Kind::Program),
    anchor("useradd", Kind::Program),
    anchor("usermod", Kind::Program),
    anchor("rdesktop", Kind::Program),
    anchor("snmp", Kind::Program),
    anchor("tsql", Kind::Program),
    anchor("bsqldb", Kind::Program),
    anchor("mssql-cli", Kind::Program),
    anchor("swaks", Kind::Program),
    anchor("etcdctl", Kind::Program),
    anchor("jenkins-cli", Kind::Program),
    anchor("dotnet nuget", Kind::Program),
    anchor("kubectl ", Kind::Program),
    anchor("oc login", Kind::Program),
    anchor("oc create", Kind::Program),
    anchor("cf login", Kind::Program),
    anchor("ibmcloud login", Kind::Program),
    anchor("security ", Kind::Program),
    anchor("xcrun altool", Kind::Program),
    anchor("aria2c", Kind::Program),
    anchor("wget", Kind::Program),
    anchor("http ", Kind::Program),
    anchor("https ", Kind::Program),
    anchor("xh ", Kind::Program),
    anchor("gh secret", Kind::Program),
    anchor("fly secrets", Kind::Program),
    anchor("flyctl secrets", Kind::Program),
    anchor("doppler secrets", Kind::Program),
    anchor("vault kv", Kind::Program),
    anchor("vault write", Kind::Program),
    anchor("bao kv", Kind::Program),
    anchor("bao write", Kind::Program),
    anchor("pulumi config", Kind::Program),
    anchor("poetry publish", Kind::Program),
    anchor("poetry config", Kind::Program),
    anchor("uv publish", Kind::Program),
    anchor("redis-server", Kind::Program),
    anchor("dotnet user-secrets", Kind::Program),
    anchor("choco apikey", Kind::Program),
    anchor("yarn config", Kind::Program),
    anchor("git config", Kind::Program),
    anchor("signtool", Kind::Program),
    anchor("ansible-vault", Kind::Program),
    anchor("rclone ", Kind::Program),
    anchor("rman ", Kind::Program),
    anchor("snowsql", Kind::Program),
    anchor("cypher-shell", Kind::Program),
    anchor("cbq ", Kind::Program),
    anchor("couchbase-cli", Kind::Program),
    anchor("kadmin", Kind::Program),
    anchor("slappasswd", Kind::Program),
    anchor("net user", Kind::Program),
    anchor("bundle config", Kind::Program),
    anchor("p4 ", Kind::Program),
    anchor("vercel ", Kind::Program),
    anchor("netlify ", Kind::Program),
    anchor("doppler configure", Kind::Program),
    anchor("supabase ", Kind::Program),
    anchor("eas ", Kind::Program),
    anchor("travis encrypt", Kind::Program),
    anchor("cloudflared service", Kind::Program),
    anchor("bw ", Kind::Program),
    anchor("pdftotext", Kind::Program),
    anchor("steghide", Kind::Program),
    anchor("evil-winrm", Kind::Program),
    anchor("psexec", Kind::Program),
    anchor("hydra ", Kind::Program),
    anchor("sendemail", Kind::Program),
    anchor("yt-dlp", Kind::Program),
    anchor("youtube-dl", Kind::Program),
    anchor("llm keys", Kind::Program),
    anchor("nuget setapikey", Kind::Program),
    anchor("sonar-scanner", Kind::Program),
    anchor("gcloud auth", Kind::Program),
    anchor("vault unseal", Kind::Program),
    anchor("gh variable", Kind::Program),
    anchor("glab variable", Kind::Program),
    anchor("buildah", Kind::Program),
    anchor("sudo -S", Kind::Reader),
    anchor("sudo --stdin", Kind::Reader),
    anchor("password-stdin", Kind::Reader),
    anchor("token-stdin", Kind::Reader),
    anchor("key-stdin", Kind::Reader),
    anchor("-pass stdin", Kind::Reader),
    anchor("-passin stdin", Kind::Reader),
    anchor("passwd --stdin", Kind::Reader),
    anchor("chpasswd", Kind::Reader),
    anchor("--with-token", Kind::Reader),
    anchor("--passphrase-fd", Kind::Reader),
    anchor("vault login -", Kind::Reader),
    anchor("bao login -", Kind::Reader),
    anchor("gh secret set", Kind::Reader),
    anchor("wrangler secret put", Kind::Reader),
    anchor("vercel env add", Kind::Reader),
    anchor("secrets import", Kind::Reader),
    anchor("cryptsetup ", Kind::Reader),
];

const COUNT: usize = TOKENS.len() + OTHERS.len();

/// Everything to look for, ordered by its first letter.
static ANCHORS: [Anchor; COUNT] = ordered().0;
/// For each letter in lower case, where its anchors begin; one more for the end.
static BEGINS: [u16; 257] = ordered().1;

const fn ordered() -> ([Anchor; COUNT], [u16; 257]) {
    let mut anchors = [anchor("", Kind::Jwt); COUNT];
    let mut begins = [0; 257];
    let mut letter = 0;
    let mut filled = 0;
    while letter < 256 {
        begins[letter] = filled as u16;
        let mut index = 0;
        while index < COUNT {
            let one = if index < TOKENS.len() {
                anchor(TOKENS[index].prefix, Kind::Token(index))
            } else {
                OTHERS[index - TOKENS.len()]
            };
            if one.text.as_bytes()[0].to_ascii_lowercase() as usize == letter {
                anchors[filled] = one;
                filled += 1;
            }
            index += 1;
        }
        letter += 1;
    }
    begins[256] = filled as u16;
    (anchors, begins)
}

/// The first letters of each anchor without their case, as a number, and which of its bytes matter.
static HEADS: [(u64, u64); COUNT] = heads();

const fn heads() -> [(u64, u64); COUNT] {
    let (anchors, _) = ordered();
    let mut heads = [(0, 0); COUNT];
    let mut index = 0;
    while index < COUNT {
        let bytes = anchors[index].text.as_bytes();
        let mut at = 0;
        while at < 8 && at < bytes.len() {
            heads[index].0 |= ((bytes[at] | CASE_BIT) as u64) << (8 * at);
            heads[index].1 |= 0xff << (8 * at);
            at += 1;
        }
        index += 1;
    }
    heads
}

/// The bit that tells lower case from upper.
const CASE_BIT: u8 = 0x20;

/// The first letters of a text without their case, as a number.
fn head(text: &[u8]) -> u64 {
    let word = match text.first_chunk::<8>() {
        Some(bytes) => u64::from_le_bytes(*bytes),
        None => text.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)),
    };
    word | u64::from_le_bytes([CASE_BIT; 8])
}

/// How far the classes of three characters, of six bits each, are shifted to make a group of them.
/// They overlap by a bit: some groups are mistaken for others, and the table stays in the fastest
/// cache.
const SHIFTS: [u32; 3] = [10, 5, 0];
const GROUPS: usize = 1 << 16;

/// The signs that are in anchors have a class of their own, and so has each letter.
const SIGNS: &[u8] = b"_-.:/=+~$ ";

const fn classes() -> [u8; 256] {
    let mut classes = [63; 256];
    let mut at = 0;
    while at < 26 {
        classes[b'a' as usize + at] = at as u8;
        classes[b'A' as usize + at] = 26 + at as u8;
        at += 1;
    }
    at = 0;
    while at < 10 {
        classes[b'0' as usize + at] = 52;
        at += 1;
    }
    at = 0;
    while at < SIGNS.len() {
        classes[SIGNS[at] as usize] = 53 + at as u8;
        at += 1;
    }
    classes
}

/// The groups of three characters with which an anchor begins, one bit each.
static BEGINNINGS: [u64; GROUPS / 64] = beginnings();

const fn beginnings() -> [u64; GROUPS / 64] {
    let classes = classes();
    let (anchors, _) = ordered();
    let mut bits = [0; GROUPS / 64];
    let mut index = 0;
    while index < COUNT {
        let one = anchors[index];
        let bytes = one.text.as_bytes();
        // Of two letters, any third may follow.
        let thirds = if bytes.len() > 2 { 1 } else { 64 };
        let mut third = 0;
        while third < thirds {
            let mut cases = 0;
            while cases < if one.ignores_case() { 8 } else { 1 } {
                let mut group = 0;
                let mut at = 0;
                while at < 3 {
                    let class = if at < bytes.len() {
                        let byte =
                            if cases & (1 << at) != 0 { bytes[at].to_ascii_uppercase() } else { bytes[at] };
                        classes[byte as usize] as usize
                    } else {
                        third
                    };
                    group ^= class << SHIFTS[at];
                    at += 1;
                }
                bits[group / 64] |= 1 << (group % 64);
                cases += 1;
            }
            third += 1;
        }
        index += 1;
    }
    bits
}

/// The groups that a character is in as the first, the second and the third.
static FIRST: [u16; 256] = shifted(SHIFTS[0]);
static SECOND: [u16; 256] = shifted(SHIFTS[1]);
static THIRD: [u16; 256] = shifted(SHIFTS[2]);

const fn shifted(bits: u32) -> [u16; 256] {
    let classes = classes();
    let mut shifted = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        shifted[byte] = (classes[byte] as u16) << bits;
        byte += 1;
    }
    shifted
}

/// The next position at which an anchor may be.
#[inline(never)] // The loop is short, and needs all registers for itself.
pub(super) fn next(text: &[u8], from: usize) -> Option<usize> {
    for (at, window) in text.get(from..)?.windows(3).enumerate() {
        let [first, second, third] = [window[0], window[1], window[2]].map(usize::from);
        let group = usize::from(FIRST[first] ^ SECOND[second] ^ THIRD[third]);
        if BEGINNINGS[group / 64] >> (group % 64) & 1 != 0 && is_any_at(&text[from + at..]) {
            return Some(from + at);
        }
    }
    None
}

/// The anchors with this first letter.
fn candidates(text: &[u8]) -> Range<usize> {
    let letter = usize::from(text[0].to_ascii_lowercase());
    usize::from(BEGINS[letter])..usize::from(BEGINS[letter + 1])
}

/// Whether a text may begin with an anchor.
#[inline(never)]
fn is_any_at(text: &[u8]) -> bool {
    let there = head(text);
    HEADS[candidates(text)].iter().any(|(head, mask)| there & mask == *head)
}

/// The anchors at a position.
pub(super) fn at(text: &[u8], at: usize) -> impl Iterator<Item = &'static Anchor> {
    let rest = &text[at..];
    let range = candidates(rest);
    let there = head(rest);
    let heads = &HEADS[range.clone()];
    ANCHORS[range]
        .iter()
        .zip(heads)
        .filter(move |(_, (head, mask))| there & mask == *head)
        .map(|(anchor, _)| anchor)
        .filter(move |anchor| {
            let wanted = anchor.text.as_bytes();
            rest.get(..wanted.len()).is_some_and(|there| match anchor.ignores_case() {
                true => there.eq_ignore_ascii_case(wanted),
                false => there == wanted,
            })
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_anchor_is_found() {
        for anchor in &ANCHORS {
            for text in [anchor.text.to_owned(), anchor.text.to_ascii_uppercase()] {
                if text != anchor.text && !anchor.ignores_case() {
                    continue;
                }
                let text = format!("é{text}  ");
                assert_eq!(next(text.as_bytes(), 2), Some(2), "{text}");
                assert!(at(text.as_bytes(), 2).any(|there| there.text == anchor.text), "{text}");
            }
        }
        assert_eq!(next("nothing of it is here".as_bytes(), 0), None);
    }
}
