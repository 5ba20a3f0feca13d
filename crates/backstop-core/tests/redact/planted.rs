//! Secrets to plant: one for each shape, made up when they are asked for, so that none is in this
//! file.
//!
//! A shape is a line with a group in braces for each part that is random: the characters (`a`
//! letters and digits, `h` hexadecimal, `u` upper case and digits, `l` lower case and digits, `w`
//! letters, digits, `_` and `-`, `b` base64, `n` digits, `p` a password, `x` a password of letters)
//! and how many. Digits are no secret by themselves; every other part is. `¦` in a line stands for
//! nothing: it parts what a scanner of repositories would take for a secret.

/// A line with a secret in it.
#[derive(Debug, Clone)]
pub(crate) struct Planted {
    /// The shape.
    pub(crate) shape: &'static str,
    /// The line.
    pub(crate) line: String,
    /// What must not be found afterwards.
    pub(crate) secrets: Vec<String>,
}

/// One line for each shape.
pub(crate) fn planted(seed: u64) -> Vec<Planted> {
    let mut random = Random(seed ^ 0x9e37_79b9_7f4a_7c15);
    SHAPES.iter().map(|shape| fill(shape, &mut random)).collect()
}

struct Random(u64);

impl Random {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % most
    }

    fn text(&mut self, kind: char, count: usize) -> String {
        const UPPER: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
        const LOWER: &str = "abcdefghijklmnopqrstuvwxyz";
        const DIGITS: &str = "0123456789";
        let alphabet = match kind {
            'a' => [UPPER, LOWER, DIGITS].concat(),
            'h' => "0123456789abcdef".to_owned(),
            'u' => [UPPER, DIGITS].concat(),
            'l' => [LOWER, DIGITS].concat(),
            'w' => [UPPER, LOWER, DIGITS, DIGITS, "_-"].concat(),
            'b' => [UPPER, LOWER, DIGITS, "+/"].concat(),
            'n' => DIGITS.to_owned(),
            'p' => [UPPER, LOWER, DIGITS, DIGITS, ".!"].concat(),
            'x' => LOWER.to_owned(),
            other => panic!("no such kind: {other}"),
        };
        let letters: Vec<char> = alphabet.chars().collect();
        let mut text: Vec<char> = (0..count).map(|_| letters[self.below(letters.len())]).collect();
        // Chance must not make a word of it.
        if !matches!(kind, 'x' | 'n') && count >= 8 {
            for (at, sure) in [(1, '7'), (4, '3'), (5, if kind == 'u' { 'Q' } else { 'b' })] {
                text[at] = sure;
            }
            if matches!(kind, 'a' | 'w' | 'b' | 'p') {
                (text[2], text[6]) = ('K', 'X');
            }
            text[0] = if kind == 'u' { 'M' } else { 'c' };
            text[count - 1] = if kind == 'u' { 'Z' } else { 'e' };
        }
        text.into_iter().collect()
    }
}

fn fill(shape: &'static str, random: &mut Random) -> Planted {
    let (mut line, mut secrets) = (String::new(), Vec::new());
    let mut rest = shape;
    while let Some(open) = rest.find('{') {
        let (before, group) = rest.split_at(open);
        line.push_str(before);
        let close = group.find('}').unwrap_or(0);
        let kind = group[1..].chars().next().filter(char::is_ascii_lowercase);
        let count = group.get(2..close).and_then(|count| count.parse::<usize>().ok());
        if let (Some(kind), Some(count)) = (kind, count) {
            let text = random.text(kind, count);
            line.push_str(&text);
            if kind != 'n' && count >= 6 {
                secrets.push(text);
            }
            rest = &group[close + 1..];
        } else {
            line.push('{');
            rest = &group[1..];
        }
    }
    line.push_str(rest);
    assert!(!secrets.is_empty(), "{shape}");
    Planted { shape, line: line.replace('¦', ""), secrets }
}

/// One line for each shape.
pub(crate) const SHAPES: &[&str] = &[
    // Models and their tools.
    "key sk-¦{a48} rejected",
    "sk-¦ant-api03-{w93}",
    "using sk-¦proj-{w60}",
    "sk-¦svcacct-{w60}",
    "sk-¦or-v1-{h64}",
    "g¦sk_{a52}",
    "x¦ai-{a80}",
    "pp¦lx-{a48}",
    "nv¦api-{w64}",
    "login with h¦f_{a34}",
    "api¦_org_{a34}",
    "r¦8_{a37}",
    "tgp¦_v1_{w43}",
    "pc¦sk_{w60}",
    "lsv2¦_pt_{h32}_{h10}",
    "tv¦ly-{a32}",
    "f¦c-{h32}",
    "e¦2b_{h40}",
    "apify¦_api_{a36}",
    "s¦k_{h48}",
    // Code hosts.
    "remote: gh¦p_{a36}",
    "gh¦o_{a36}",
    "gh¦u_{a36}",
    "gh¦s_{a36}",
    "gh¦r_{a76}",
    "github¦_pat_{a22}_{a59}",
    "gl¦pat-{w20}",
    "gl¦dt-{w20}",
    "gl¦rt-{w20}",
    "gl¦cbt-{w20}",
    "gl¦ptt-{h40}",
    "gl¦agent-{w50}",
    "GR1348¦941{w20}",
    "AT¦BB{a32}",
    "AT¦ATT3{w180}={u8}",
    "AT¦CTT3{w180}",
    // Clouds.
    "AK¦IA{u16}",
    "AS¦IA{u16}",
    "AB¦IA{u16}",
    "aws_secret_access_key = {b40}",
    "AWS_SECRET_ACCESS_KEY={b40}",
    "aws_session_token={b120}",
    "\"secretAccessKey\": \"{b40}\"",
    "\"SessionToken\":\"IQoJ¦b3JpZ2lu{b120}\"",
    "AI¦za{w35}",
    "ya¦29.{w60}",
    "GOC¦SPX-{w28}",
    "1¦//0{w60}",
    "\"private_key_id\": \"{n40}\", \"client_secret\": \"{w24}\"",
    "DefaultEndpointsProtocol=https;AccountName=x;AccountKey={b86}==;EndpointSuffix=core",
    "Endpoint=sb://x.example/;SharedAccessKeyName=k;SharedAccessKey={b43}=",
    "Server=tcp:db.example;Database=x;User ID=u;Password={p16};Encrypt=True",
    "Server=db;Uid=app;Pwd={p14};",
    "https://x.blob.example/c/f?sv=2022-11-02&sr=b&sig={b43}%3D&se=2030",
    "client {a3}8¦Q~{a34}",
    "LT¦AI{a20}",
    "AK¦ID{a32}",
    "do¦p_v1_{h64}",
    "do¦o_v1_{h64}",
    "HR¦KU-{h8}-{h4}-{h4}-{h4}-{h12}",
    "nf¦p_{a36}",
    "vc¦p_{a24}",
    "sb¦p_{h40}",
    "sb¦_secret_{w31}",
    "fm¦2_{b120}",
    "Authorization: FlyV1 {b80}",
    "rn¦d_{a32}",
    "pscale¦_tkn_{w43}",
    "pscale¦_pw_{w43}",
    "da¦pi{h32}",
    "dt0c¦01.{u24}.{u64}",
    "v1.¦0-{h24}-{h146}",
    "X-Auth-Key: {h37}",
    "CF_API_TOKEN={w40}",
    "cloudflare_api_key: {h37}",
    // Secrets, infrastructure, deployment.
    "hv¦s.{w90}",
    "hv¦b.{w90}",
    "X-Vault-Token: {a24}",
    "dp.¦pt.{a43}",
    "dp.¦st.dev.{a43}",
    "pu¦l-{h40}",
    "AGE-SECRET¦-KEY-1{u58}",
    "tskey¦-auth-{a12}-{a32}",
    "{a14}.atlas¦v1.{w67}",
    "dckr¦_pat_{w27}",
    "CCI¦PAT_{a22}_{h40}",
    "bk¦ua_{h40}",
    "sq¦u_{h40}",
    "sg¦p_{h40}",
    "AK¦Cp{a69}",
    "PM¦AK-{h24}-{h34}",
    "signkey¦-prod-{h64}",
    "CF¦PAT-{w43}",
    "client-key-data: {b200}",
    "    token: {w60}",
    "kubectl --token={w60} get pods",
    "K8S_AUTH_API_KEY={w40}",
    // Packages.
    "np¦m_{a36}",
    "py¦pi-AgE{w150}",
    "rubygems¦_{h48}",
    "//registry.example/:_authToken={h8}-{h12}-{a16}",
    "_auth={b32}==",
    "_password={b24}",
    "oy¦2{l43}",
    "\"auth\": \"{b40}\"",
    "password = {p16}",
    // Observation.
    "gl¦sa_{a32}_{h8}",
    "gl¦c_{b80}",
    "snt¦rys_{b80}",
    "NR¦AK-{u27}",
    "{h36}NR¦AL",
    "DD-API-KEY: {h32}",
    "DD_APP_KEY={h40}",
    "https://{h32}@sentry.example/42",
    "routing_key: {h32}",
    // Messages and mail.
    "xo¦xb-{n12}-{n12}-{a24}",
    "xo¦xp-{n12}-{n12}-{n12}-{h32}",
    "xo¦xe.xoxp-1-{a120}",
    "xap¦p-1-{u11}-{n13}-{h64}",
    "S¦G.{w22}.{w43}",
    "ke¦y-{h32}",
    "{h32}-¦us14",
    "xkey¦sib-{h64}-{a16}",
    "S¦K{h32}",
    "TWILIO_AUTH_TOKEN={h32}",
    "{n10}:A¦A{w33}",
    "M¦TA{a22}.{a6}.{w38}",
    "https://hooks.sla¦ck.com/services/T{u8}/B{u8}/{a24}",
    "https://disc¦ord.com/api/webhooks/{n18}/{w68}",
    "https://x.webhook.off¦ice.com/webhookb2/{h8}@{h12}/IncomingWebhook/{h32}/{h12}",
    "https://hooks.zap¦ier.com/hooks/catch/{n7}/{l12}/",
    "https://api.tele¦gram.org/bot{n10}:{w35}/sendMessage",
    "https://open.feishu.cn/open-apis/bot/v2/hook/{h8}-{h12}",
    // Payments and shops.
    "sk_¦live_{a24}",
    "sk_¦test_{a24}",
    "rk_¦live_{a24}",
    "wh¦sec_{a32}",
    "shp¦at_{h32}",
    "shp¦ss_{h32}",
    "sq0¦atp-{w22}",
    "sq0¦csp-{w43}",
    "EA¦AA{w60}",
    "rzp_¦live_{a14}",
    "FLWSE¦CK-{h32}-X",
    "access-¦production-{h8}-{h4}-{h4}-{h4}-{h12}",
    // Work and documents.
    "lin¦_api_{a40}",
    "nt¦n_{n11}{a35}",
    "sec¦ret_{a43}",
    "fi¦gd_{w40}",
    "pa¦t-na1-{h8}-{h4}-{h4}-{h4}-{h12}",
    "pa¦t{a14}.{h64}",
    "tf¦p_{w59}",
    "AP¦I-{u26}",
    "sd¦k-{h8}-{h4}-{h4}-{h4}-{h12}",
    "ao¦_key=x api_key={a32}",
    // Signed tokens and private keys.
    "ey¦JhbGciOiJIUzI1NiJ9.eyJzdWIiOiIx{w20}.{w43}",
    "ey¦J{w30}.{w80}.{w43}",
    "-----BEGIN RSA PRI¦VATE KEY-----\\n{b64}\\n{b64}\\n-----END RSA PRI¦VATE KEY-----",
    "-----BEGIN OPENSSH PRI¦VATE KEY-----\\n{b70}\\n-----END OPENSSH PRI¦VATE KEY-----\\n",
    "-----BEGIN PGP PRI¦VATE KEY BLOCK-----\\n{b64}\\n-----END PGP PRI¦VATE KEY BLOCK-----",
    "-----BEGIN EC PRI¦VATE KEY----- {b64} -----END EC PRI¦VATE KEY-----",
    "LS0t¦LS1CRUdJTiBSU0EgUFJJVkFURSB{b80}",
    "b3BlbnN¦zaC1rZXktdjE{b120}",
    "PrivateKey = {b43}=",
    "privateKey: \"{b64}\"",
    // Names and values.
    "password={p12}",
    "PASSWORD={x12}",
    "DB_PASS={p12}",
    "DB_PASSWORD=\"{p12}\"",
    "PGPASSWORD='{p12}' psql",
    "MYSQL_PWD={p12}",
    "password: {p12}",
    "password: {x12}",
    "db-password: {x14}",
    "Password: {x6} {x7} {x8}",
    "passwd: '{p12}'",
    "passphrase = {p20}",
    "{\"password\":\"{p12}\"}",
    "{\"password\": \"{x6} {x8}\"}",
    "{\"user\":{\"passwd\": \"{x10}\"}}",
    "{'secret': '{a20}'}",
    "client_secret={w32}",
    "clientSecret: '{w32}'",
    "client-secret: {w32}",
    "\"secretKey\": \"{a32}\"",
    "api_key={a32}",
    "apiKey: \"{a32}\"",
    "API-KEY: {a32}",
    "x-api-key: {a32}",
    "X-Api-Key={a32}",
    "access_token={w40}",
    "accessToken: '{w40}'",
    "refresh_token\": \"{w40}\"",
    "id_token={w40}",
    "auth_token: {w40}",
    "AUTH_TOKEN='{w40}'",
    "token={a20}",
    "token: {a20}",
    "GET /v1?access_token={a32}&x=1",
    "GET /cb?code={a32}&state=1",
    "https://x.example/f?X-Amz-Credential={u20}%2F2030&X-Amz-Signature={h64}",
    "https://storage.example/b?GoogleAccessId=x&Signature={b60}",
    "encryption_key={h64}",
    "SIGNING_KEY={b44}",
    "MASTER_KEY={h32}",
    "SECRET_KEY_BASE={h128}",
    "credentials={a24}",
    "jwt={w60}",
    "<password>{p12}</password>",
    "<password>{x12}</password>",
    "<apiKey>{a24}</apiKey>",
    "<add key=\"ApiKey\" value=\"{a24}\"/>",
    "password => '{p12}'",
    "password := \"{p12}\"",
    "config.password = \"{p12}\"",
    "os.environ['API_TOKEN'] = '{a24}'",
    "export GITHUB_TOKEN={a40}",
    "-e DB_PASSWORD={p12}",
    "env: DATABASE_PASSWORD: {p12}",
    "{\"pass\":\"{a24}\"}",
    "{\"user\": \"bob\", \"pass\": \"{l12}\"}",
    "PASS={a16}",
    "docker run -e PGPASS={p12} db",
    "export PW={a16}",
    "DBPW={a16}",
    "db_pw: {a20}",
    "TF_VAR_db_pw={l12}",
    "BEARER={a24}",
    "MY_ACCESS={a24}",
    "APP_PRIVATE={a24}",
    "HASH_SALT={a24}",
    "curl -H 'X-Auth: {a24}' https://x.example",
    "your password is {a24}",
    "pass\u{200b}word={p12}",
    "api_\u{2060}k\u{ad}ey={a32}",
    "AKIA¦ABCDEFGHIJKLMNOP {b40}",
    "ASIA¦ABCDEFGHIJKLMNOP:{b40}",
    // SQL.
    "ALTER USER 'bob'@'%' IDENTIFIED BY '{p12}'",
    "create user bob identified with caching_sha2_password by '{x12}'",
    "CREATE ROLE app WITH LOGIN PASSWORD '{p12}'",
    "alter role app password '{x10}';",
    // Addresses.
    "https://bob:{p12}@example.com/x",
    "postgres://app:{p14}@db:5432/x",
    "postgresql://app:{x10}@db/x",
    "mongodb+srv://app:{p14}@c.example/x",
    "redis://:{p16}@cache:6379/0",
    "amqp://guest:{p12}@mq//",
    "https://u:{a6}/{a8}@host.example/x",
    "https://{a40}@github.example/o/r.git",
    "https://x-access-token:{a36}@github.example/o/r",
    "smtp://user%40example.com:{p12}@mail:587",
    // Headers.
    "Authorization: Bearer {a32}",
    "authorization: bearer {w60}",
    "> Authorization: Basic {b24}==",
    "Authorization: ApiKey {a32}",
    "Authorization: Token {h40}",
    "Authorization: token {h40}",
    "Authorization: SSWS {w42}",
    "Authorization: {w42}",
    "Authorization: Digest username=\"x\", nonce=\"{h32}\", response=\"{h32}\"",
    "Authorization: AWS4-HMAC-SHA256 Credential=x/2030, SignedHeaders=host, Signature={h64}",
    "Proxy-Authorization: Basic {b24}=",
    "'Authorization': 'Bearer {a32}', 'Accept': '*/*'",
    "\"authorization\":\"Splunk {h8}-{h4}-{h4}-{h4}-{h12}\"",
    "Cookie: session={a32}; theme=dark; sid={a16}",
    "Set-Cookie: sid={w40}; Path=/; HttpOnly",
    "cookie: {\"_x\": 1, \"session_token\": \"{w40}\"}",
    "PRIVATE-TOKEN: {w20}",
    "X-Amz-Security-Token: {b200}",
    "X-Goog-Api-Key: {w39}",
    // Command lines.
    "curl -u bob:{p12} https://x.example",
    "curl -ubob:{p12} https://x.example",
    "curl --user bob:{p12} https://x.example",
    "curl -s -H 'Authorization: token {h40}' https://x.example",
    "curl -H \"X-Api-Key: {a32}\" https://x.example",
    "curl -b 'sid={a32}' https://x.example",
    "mysql -uroot -p{p12} db",
    "mysqldump --password={p12} db",
    "sshpass -p {p12} ssh host",
    "sshpass -p'{p12}' ssh host",
    "plink -pw {p12} bob@host",
    "twine upload -u bob -p {p12} dist/x.whl",
    "mosquitto_pub -h host -P {p12} -t a",
    "keytool -list -storepass {p12} -keystore k",
    "jarsigner -keypass {p12} a.jar alias",
    "lftp -u bob,{p12} host",
    "7z x -p{p12} a.7z",
    "unzip -P {p12} a.zip",
    "redis-cli -a {p12} ping",
    "docker login -u bob -p {p12} registry.example",
    "mongosh -u a -p {p12} db",
    "ldapsearch -x -w {p12} -b dc=x",
    "openssl rsa -passin pass:{p12} -in k",
    "smbclient -U bob%Z{p12} //h/s",
    "vault login {a32}",
    "vault operator unseal {b40}",
    "vault token revoke {a32}",
    "cargo login {a32}",
    "snyk auth {a32}",
    "ngrok config add-authtoken {a40}",
    "bw login bob@x.example {p12}",
    "rabbitmqctl add_user bob {p12}",
    "mc alias set here https://x.example bob {a32}",
    "nmcli dev wifi connect home password {p12}",
    "wpa_passphrase home {p12}",
    "pdftk a.pdf output b.pdf user_pw {p12}",
    "nuget push a.nupkg {a32} -Source x",
    "sqlplus bob/{p12}@db",
    "doctl auth init -t {a32}",
    "ssh-keygen -t ed25519 -N {p12} -f k",
    "useradd -p {p12} bob",
    "snmpwalk -v3 -A {p12} host",
    "swaks --to a@x.example -ap {p12}",
    "kubectl create secret generic n --from-literal=foo={a32}",
    "oc login -u bob -p {p12}",
    "security unlock-keychain -p {p12} login.keychain",
    "curl --oauth2-bearer {a40} https://x.example",
    "etcdctl --user root:{p12} get a",
    "deploy --token {a32} now",
    "deploy --api-key {a32} now",
    "deploy --client-secret {a32}",
    "deploy --access-token {w40}",
    "deploy --auth-token={w40}",
    "deploy --db-password {x12}",
    "deploy --password '{x12}'",
    "deploy --passphrase {p12}",
    "deploy -password {p12}",
    "deploy --github-token {a40}",
    "aws configure set aws_secret_access_key {b40}",
    "npm config set //registry.example/:_authToken {a36}",
    "machine host.example login bob password {p12}",
];
