//! Which arguments of which programs are secrets, as a table: flags whose values are, words behind
//! a subcommand, programs whose values follow their names.

/// How an argument holds its secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// The next word.
    Next,
    /// The rest of the word.
    Joined,
    /// The rest of the word, else the next one.
    Either,
    /// What follows this sign in the rest of the word or in the next one.
    After(u8),
}

/// A flag of these programs, if this word comes first where one is named.
pub(super) struct Flag {
    pub(super) programs: &'static [&'static str],
    pub(super) only: &'static str,
    pub(super) flag: &'static str,
    pub(super) form: Form,
}

const fn flag(programs: &'static [&'static str], flag: &'static str, form: Form) -> Flag {
    Flag { programs, only: "", flag, form }
}

const fn flag_of(
    programs: &'static [&'static str],
    only: &'static str,
    flag: &'static str,
    form: Form,
) -> Flag {
    Flag { programs, only, flag, form }
}

const MYSQL: &[&str] = &[
    "mysql",
    "mysqldump",
    "mysqladmin",
    "mysqlimport",
    "mysqlcheck",
    "mysqlshow",
    "mysqlsh",
    "mariadb",
    "mariadb-dump",
    "mariadb-admin",
    "mycli",
];
const ARCHIVES: &[&str] = &["7z", "7za", "7zr", "7zz"];
const REGISTRIES: &[&str] =
    &["docker", "podman", "nerdctl", "helm", "oras", "crane", "skopeo", "az", "buildah"];
const HTTPIE: &[&str] = &["http", "https", "xh", "xhs"];
const REDIS: &[&str] = &["redis-cli", "valkey-cli"];

pub(super) const FLAGS: &[Flag] = &[
    flag(&["curl"], "-u", Form::After(b':')),
    flag(&["curl"], "--user", Form::After(b':')),
    flag(&["curl"], "-U", Form::After(b':')),
    flag(&["curl"], "--proxy-user", Form::After(b':')),
    flag(&["curl"], "-b", Form::After(b'=')),
    flag(&["curl"], "--cookie", Form::After(b'=')),
    flag(HTTPIE, "-a", Form::After(b':')),
    flag(HTTPIE, "--auth", Form::After(b':')),
    flag(MYSQL, "-p", Form::Joined),
    flag(&["sshpass"], "-p", Form::Either),
    flag(ARCHIVES, "-p", Form::Joined),
    flag(&["rar", "unrar"], "-p", Form::Joined),
    flag(&["rar", "unrar"], "-hp", Form::Joined),
    flag(&["zip", "unzip"], "-P", Form::Either),
    flag(REDIS, "-a", Form::Either),
    flag(REDIS, "--pass", Form::Next),
    flag(&["redis-server", "valkey-server"], "--requirepass", Form::Either),
    flag(&["redis-server", "valkey-server"], "--masterauth", Form::Either),
    flag(
        &["mongo", "mongosh", "mongodump", "mongorestore", "mongoexport", "mongoimport"],
        "-p",
        Form::Either,
    ),
    flag(&["sqlcmd", "bcp"], "-P", Form::Either),
    flag(&["cqlsh", "rabbitmqadmin"], "-p", Form::Either),
    flag(
        &["ldapsearch", "ldapadd", "ldapmodify", "ldapdelete", "ldapwhoami", "ldappasswd"],
        "-w",
        Form::Either,
    ),
    flag(&["smbclient"], "-U", Form::After(b'%')),
    flag_of(REGISTRIES, "login", "-p", Form::Either),
    flag(&["openssl"], "-passin", Form::After(b':')),
    flag(&["openssl"], "-passout", Form::After(b':')),
    flag(&["openssl"], "-pass", Form::After(b':')),
    flag(&["openssl"], "-k", Form::Next),
    flag(&["ipmitool"], "-P", Form::Either),
    flag(&["xfreerdp"], "/p:", Form::Joined),
    flag(&["influx"], "-password", Form::Next),
    flag(&["pscp", "plink", "psftp", "mqtt"], "-pw", Form::Next),
    flag(&["twine"], "-p", Form::Either),
    flag(&["mosquitto_pub", "mosquitto_sub"], "-P", Form::Either),
    flag(&["keytool", "jarsigner"], "-storepass", Form::Next),
    flag(&["keytool", "jarsigner"], "-keypass", Form::Next),
    flag(&["lftp"], "-u", Form::After(b',')),
    flag(&["curl"], "--oauth2-bearer", Form::Next),
    flag(&["curl"], "-E", Form::After(b':')),
    flag(&["curl"], "--cert", Form::After(b':')),
    flag(&["curl"], "--proxy-cert", Form::After(b':')),
    flag(&["wget", "aria2c"], "--http-passwd", Form::Either),
    flag(&["codecov"], "-t", Form::Either),
    flag_of(&["doctl"], "init", "-t", Form::Either),
    flag_of(&["glab"], "login", "-t", Form::Either),
    flag(&["ssh-keygen"], "-N", Form::Next),
    flag(&["ssh-keygen"], "-P", Form::Next),
    flag(&["useradd", "usermod"], "-p", Form::Next),
    flag(&["rdesktop"], "-p", Form::Either),
    flag(&["snmpwalk", "snmpget", "snmpset"], "-A", Form::Either),
    flag(&["snmpwalk", "snmpget", "snmpset"], "-X", Form::Either),
    flag(&["snmpwalk", "snmpget", "snmpset"], "-c", Form::Either),
    flag(&["tsql", "bsqldb", "mssql-cli"], "-P", Form::Either),
    flag(&["swaks"], "-ap", Form::Next),
    flag(&["etcdctl"], "--user", Form::After(b':')),
    flag(&["java", "jenkins-cli"], "-auth", Form::After(b':')),
    flag(&["dotnet"], "-k", Form::Next),
    flag(&["aws"], "--secret-string", Form::Next),
    flag(&["kubectl", "oc"], "--from-literal", Form::After(b'=')),
    flag_of(&["oc", "cf", "ibmcloud"], "login", "-p", Form::Either),
    flag_of(&["security"], "add-generic-password", "-w", Form::Next),
    flag_of(&["security"], "add-internet-password", "-w", Form::Next),
    flag_of(&["security"], "unlock-keychain", "-p", Form::Next),
    flag_of(&["xcrun"], "altool", "-p", Form::Next),
    flag_of(&["security"], "create-keychain", "-p", Form::Next),
    flag_of(&["security"], "import", "-P", Form::Next),
    flag_of(&["security"], "set-key-partition-list", "-k", Form::Next),
    flag_of(&["gh"], "secret", "-b", Form::Either),
    flag_of(&["gh"], "secret", "--body", Form::Either),
    flag_of(&["poetry", "uv"], "publish", "-p", Form::Either),
    flag_of(&["uv"], "publish", "-t", Form::Either),
    flag(&["skopeo"], "--src-creds", Form::After(b':')),
    flag(&["skopeo"], "--dest-creds", Form::After(b':')),
    flag(&["skopeo", "podman", "buildah"], "--creds", Form::After(b':')),
    flag_of(&["aws"], "put-parameter", "--value", Form::Either),
    flag_of(&["choco"], "apikey", "-k", Form::Either),
    flag_of(&["influx"], "config", "-t", Form::Next),
    flag(&["signtool"], "/p", Form::Next),
    flag(VAULT, "secret_id=", Form::Joined),
    flag_of(&["az"], "secret", "--value", Form::Either),
    flag_of(&["az"], "sql", "-p", Form::Either),
    flag(&["openssl"], "-K", Form::Next),
    flag(&["mycli", "snowsql", "cypher-shell", "cbq", "couchbase-cli"], "-p", Form::Either),
    flag(&["kadmin"], "-w", Form::Either),
    flag(&["ldappasswd", "slappasswd"], "-s", Form::Either),
    flag_of(&["gh"], "variable", "-b", Form::Either),
    flag_of(&["gh"], "variable", "--body", Form::Either),
    flag(&["p4"], "-P", Form::Either),
    flag(&["vercel"], "-t", Form::Next),
    flag(&["netlify"], "--auth", Form::Either),
    flag(&["supabase", "steghide", "evil-winrm", "psexec", "hydra"], "-p", Form::Either),
    flag(&["yt-dlp", "youtube-dl"], "-p", Form::Either),
    flag_of(&["eas"], "secret:create", "--value", Form::Either),
    flag_of(&["llm"], "keys", "--value", Form::Either),
    flag(&["bw"], "--session", Form::Either),
    flag(&["pdftotext", "pdftoppm", "pdfinfo", "pdfimages"], "-upw", Form::Next),
    flag(&["pdftotext", "pdftoppm", "pdfinfo", "pdfimages"], "-opw", Form::Next),
    flag(&["sqlmap"], "--auth-cred", Form::After(b':')),
    flag(&["sendemail"], "-xp", Form::Next),
    flag(&["sonar-scanner", "mvn", "gradle"], "-Dsonar.login=", Form::Joined),
];

/// Programs whose flags of one letter may stand together, and which of those letters take no value:
/// `curl -sSLu NAME:SECRET`.
pub(super) const CLUSTERS: &[(&[&str], &str)] = &[
    (&["curl"], "#0123468:aBfgGiIjJkLlMnNOpqRsSvVZ"),
    (&["zip", "unzip"], "0123456789rqejmloDTvXyunxcdfzaACjLMUVZ"),
];

/// Words behind which every `NAME=SECRET` holds one.
pub(super) struct Pairs {
    pub(super) programs: &'static [&'static str],
    pub(super) after: &'static [&'static str],
}

pub(super) const PAIRS: &[Pairs] = &[
    Pairs { programs: &["fly", "flyctl", "supabase", "doppler"], after: &["secrets", "set"] },
    Pairs { programs: VAULT, after: &["kv", "put"] },
    Pairs { programs: VAULT, after: &["kv", "patch"] },
    Pairs { programs: &["travis"], after: &["encrypt"] },
];

/// An argument without a flag that is a secret.
pub(super) struct Positional {
    pub(super) programs: &'static [&'static str],
    /// The words that it follows.
    pub(super) after: &'static [&'static str],
    /// Which word behind those it is, flags not counted, from 0.
    pub(super) nth: usize,
    /// The sign in the word that it follows; it ends at an `@`, if there is one.
    pub(super) sign: Option<u8>,
    /// What the first of those words begins with.
    pub(super) named: &'static str,
    /// A flag that must be there.
    pub(super) with: &'static str,
}

const fn word(programs: &'static [&'static str], after: &'static [&'static str], nth: usize) -> Positional {
    Positional { programs, after, nth, sign: None, named: "", with: "" }
}

const VAULT: &[&str] = &["vault", "bao"];
const ORACLE: &[&str] = &["sqlplus", "sqlldr", "expdp", "impdp"];

/// Secrets that are words of their own.
pub(super) const POSITIONALS: &[Positional] = &[
    word(VAULT, &["login"], 0),
    word(VAULT, &["unwrap"], 0),
    word(VAULT, &["operator", "unseal"], 0),
    word(VAULT, &["unseal"], 0),
    word(&["gcloud"], &["activate-refresh-token"], 1),
    word(&["openssl"], &["passwd"], 0),
    word(&["smbclient"], &[], 1),
    word(&["glab"], &["variable", "set"], 1),
    word(&["net"], &["user"], 1),
    word(&["nuget"], &["setapikey"], 0),
    word(&["doppler"], &["configure", "set", "token"], 0),
    word(&["cloudflared"], &["service", "install"], 0),
    word(REDIS, &["AUTH"], 0),
    word(REDIS, &["AUTH"], 1),
    word(REDIS, &["auth"], 0),
    word(REDIS, &["auth"], 1),
    word(VAULT, &["token", "lookup"], 0),
    word(VAULT, &["token", "renew"], 0),
    word(VAULT, &["token", "revoke"], 0),
    word(&["cargo"], &["login"], 0),
    word(&["npm"], &["token", "revoke"], 0),
    word(&["snyk"], &["auth"], 0),
    word(&["ngrok"], &["authtoken"], 0),
    word(&["ngrok"], &["add-authtoken"], 0),
    word(&["bw"], &["unlock"], 0),
    word(&["bw"], &["login"], 1),
    word(&["rabbitmqctl"], &["add_user"], 1),
    word(&["rabbitmqctl"], &["change_password"], 1),
    word(&["rabbitmqctl"], &["authenticate_user"], 1),
    word(&["mc"], &["alias", "set"], 3),
    word(&["nmcli"], &["password"], 0),
    word(&["wpa_passphrase"], &[], 1),
    word(&["iwconfig"], &["key"], 0),
    word(&["isql"], &[], 2),
    word(&["pdftk"], &["user_pw"], 0),
    word(&["pdftk"], &["owner_pw"], 0),
    word(&["pdftk"], &["input_pw"], 0),
    word(&["composer"], &["config"], 2),
    word(&["nuget"], &["push"], 1),
    word(&["mysqladmin", "mariadb-admin"], &["password"], 0),
    word(REDIS, &["requirepass"], 0),
    word(&["doppler"], &["secrets", "set"], 1),
    word(&["dotnet"], &["user-secrets", "set"], 1),
    word(&["netlify"], &["env:set"], 1),
    word(&["convex"], &["env", "set"], 1),
    word(&["rclone"], &["obscure"], 0),
    word(&["ansible-vault"], &["encrypt_string"], 0),
    Positional { with: "--secret", ..word(&["pulumi"], &["config", "set"], 1) },
    Positional { named: "pypi-token.", ..word(&["poetry"], &["config"], 1) },
    Positional { named: "http-basic.", ..word(&["poetry"], &["config"], 2) },
    Positional { named: "github-oauth.", ..word(&["composer"], &["config"], 1) },
    Positional { named: "gitlab-token.", ..word(&["composer"], &["config"], 1) },
    Positional { named: "bearer.", ..word(&["composer"], &["config"], 1) },
    Positional { sign: Some(b':'), ..word(&["bundle"], &["config"], 1) },
    Positional { sign: Some(b':'), ..word(&["bundle"], &["config", "set"], 1) },
    Positional { sign: Some(b'/'), ..word(ORACLE, &[], 0) },
    Positional { sign: Some(b'/'), ..word(&["rman"], &["target"], 0) },
];

/// Programs in whose arguments a value follows its name as a word of its own.
pub(super) const SETTERS: &[&str] = &[
    "aws",
    "npm",
    "git",
    "yarn",
    "pnpm",
    "gcloud",
    "poetry",
    "pip",
    "composer",
    "vault",
    "pulumi",
    "rclone",
    "setx",
    "launchctl",
    "setenv",
];
