//! The tokens that say by their first letters whose they are. Prefixes and lengths are facts that
//! the providers publish; one row each.

/// The characters that a token is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Body {
    /// 0-9, a-f.
    Hex,
    /// A-Z, 0-9.
    Upper,
    /// a-z, 0-9.
    Lower,
    /// Letters and digits.
    Alnum,
    /// Letters, digits, `_` and `-`.
    Word,
    /// `Word`, `.`, and what base64 has besides.
    Key,
}

impl Body {
    pub(super) fn has(self, byte: u8) -> bool {
        match self {
            Self::Hex => byte.is_ascii_digit() || matches!(byte, b'a'..=b'f'),
            Self::Upper => byte.is_ascii_digit() || byte.is_ascii_uppercase(),
            Self::Lower => byte.is_ascii_digit() || byte.is_ascii_lowercase(),
            Self::Alnum => byte.is_ascii_alphanumeric(),
            Self::Word => byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'),
            Self::Key => super::is_key_byte(byte),
        }
    }
}

/// Where a prefix may stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// Anywhere: nothing else looks like it.
    Anywhere,
    /// At the start of a word; elsewhere only before what is random beyond doubt (`task-1` has
    /// `sk-` in it).
    WordStart,
    /// At the start of a word, before what is random: nothing else tells it from other words.
    OnlyStart,
}

/// A token: its prefix, how many characters follow at least, of which kind, and where it may stand.
#[derive(Debug)]
pub(super) struct Token {
    pub(super) prefix: &'static str,
    pub(super) rest_min: usize,
    pub(super) body: Body,
    pub(super) place: Place,
}

const fn token(prefix: &'static str, rest_min: usize, body: Body) -> Token {
    Token { prefix, rest_min, body, place: Place::Anywhere }
}

/// A short prefix, which other words end in.
const fn short(prefix: &'static str, rest_min: usize, body: Body) -> Token {
    Token { prefix, rest_min, body, place: Place::WordStart }
}

/// A prefix that says little: what follows has to be random.
const fn random(prefix: &'static str, rest_min: usize, body: Body) -> Token {
    Token { prefix, rest_min, body, place: Place::OnlyStart }
}

use Body::{Alnum, Hex, Key, Lower, Upper, Word};

pub(super) const TOKENS: &[Token] = &[
    // Models and their tools.
    short("sk-", 16, Word),
    token("sk-ant-", 12, Word),
    token("sk-proj-", 12, Word),
    token("sk-svcacct-", 12, Word),
    token("sk-or-v1-", 16, Word),
    short("sess-", 32, Alnum),
    short("gsk_", 20, Alnum),
    short("xai-", 20, Alnum),
    short("csk-", 20, Alnum),
    token("pplx-", 20, Alnum),
    token("nvapi-", 20, Word),
    token("hf_", 20, Alnum),
    token("api_org_", 20, Alnum),
    short("r8_", 20, Alnum),
    token("tgp_v1_", 20, Word),
    short("fw_", 20, Alnum),
    token("pcsk_", 20, Word),
    token("lsv2_pt_", 20, Word),
    token("lsv2_sk_", 20, Word),
    token("tvly-", 16, Word),
    short("fc-", 32, Hex),
    short("jina_", 20, Word),
    short("e2b_", 20, Hex),
    token("bb_live_", 16, Word),
    token("apify_api_", 16, Alnum),
    short("rpa_", 20, Alnum),
    short("sk_", 32, Alnum),
    random("pa-", 40, Alnum),
    random("ak-", 22, Alnum),
    random("as-", 22, Alnum),
    short("key_", 64, Hex),
    token("sgamp_user_", 20, Word),
    token("hf_oauth_", 20, Alnum),
    // Code hosts.
    token("ghp_", 20, Alnum),
    token("gho_", 20, Alnum),
    token("ghu_", 20, Alnum),
    token("ghs_", 20, Alnum),
    token("ghr_", 20, Alnum),
    token("github_pat_", 20, Word),
    token("glpat-", 16, Key),
    token("gldt-", 16, Word),
    token("glrt-", 16, Key),
    token("glrtr-", 16, Key),
    token("glcbt-", 16, Word),
    token("glptt-", 16, Word),
    token("glft-", 16, Word),
    token("glimt-", 16, Word),
    token("glagent-", 16, Word),
    token("gloas-", 16, Word),
    token("glsoat-", 16, Word),
    token("glffct-", 16, Word),
    token("GR1348941", 16, Word),
    token("ATBB", 24, Alnum),
    token("ATATT3", 24, Key),
    token("ATCTT3", 24, Key),
    token("ATTA", 60, Hex),
    short("gta_", 40, Hex),
    short("gto_", 40, Hex),
    short("v1.", 40, Hex),
    // Clouds.
    token("AKIA", 16, Upper),
    token("ASIA", 16, Upper),
    token("ABIA", 16, Upper),
    token("ACCA", 16, Upper),
    token("ABSK", 40, Key),
    token("FwoGZXIvYXdz", 40, Key),
    token("IQoJb3JpZ2lu", 40, Key),
    token("amzn.mws.", 32, Word),
    token("AIza", 30, Word),
    token("ya29.", 20, Word),
    token("GOCSPX-", 20, Word),
    short("1//0", 30, Word),
    token("LTAI", 16, Alnum),
    token("AKID", 28, Alnum),
    token("ALTAK-", 16, Alnum),
    token("AQVN", 30, Word),
    token("YCAJ", 20, Word),
    token("dop_v1_", 20, Hex),
    token("doo_v1_", 20, Hex),
    token("dor_v1_", 20, Hex),
    token("HRKU-", 20, Word),
    token("nfp_", 20, Alnum),
    token("nfc_", 20, Alnum),
    token("nfo_", 20, Alnum),
    token("vcp_", 20, Alnum),
    token("vck_", 20, Alnum),
    token("vca_", 20, Alnum),
    token("vci_", 20, Alnum),
    token("vcr_", 20, Alnum),
    token("sbp_", 20, Alnum),
    token("sb_secret_", 16, Word),
    token("bedrock-api-key-", 40, Key),
    token("sha256~", 40, Word),
    token("fm1r_", 20, Key),
    token("fm1a_", 20, Key),
    token("fm2_", 20, Key),
    token("fo1_", 20, Word),
    token("rnd_", 20, Alnum),
    token("napi_", 20, Alnum),
    token("pscale_tkn_", 20, Key),
    token("pscale_pw_", 20, Key),
    token("pscale_oauth_", 20, Key),
    token("v1.0-", 40, Word),
    token("cfut_", 20, Word),
    token("cfat_", 20, Word),
    token("cfk_", 20, Word),
    token("dapi", 32, Hex),
    token("dt0c01.", 20, Key),
    token("dt0s01.", 20, Key),
    token("t1.9eu", 30, Key),
    token("vercel_blob_rw_", 20, Word),
    token("0x4AAAAAAA", 20, Word),
    token("CCDB1_", 40, Word),
    random("cflt", 40, Alnum),
    token("npg_", 12, Alnum),
    token("depot_project_", 40, Hex),
    token("scalr-", 30, Word),
    // Secrets, infrastructure, deployment.
    token("hvs.", 20, Word),
    token("hvb.", 20, Word),
    token("hvr.", 20, Word),
    random("s.", 24, Alnum),
    token("b.AAAA", 60, Word),
    random("at_", 60, Word),
    token("dp.pt.", 20, Alnum),
    token("dp.st.", 20, Key),
    token("dp.ct.", 20, Alnum),
    token("dp.sa.", 20, Alnum),
    token("dp.scim.", 20, Alnum),
    token("dp.audit.", 20, Alnum),
    token("pul-", 32, Hex),
    token("ops_eyJ", 30, Key),
    token("AGE-SECRET-KEY-1", 20, Upper),
    token("age-secret-key-1", 20, Lower),
    token("tskey-", 16, Word),
    token("ico-", 30, Alnum),
    token("dnkey-", 20, Word),
    token("dckr_pat_", 16, Word),
    token("dckr_oat_", 16, Word),
    token("CCIPAT_", 20, Word),
    token("CCIPRJ_", 20, Word),
    token("bkua_", 20, Alnum),
    token("bkct_", 20, Alnum),
    token("bkaj_", 20, Alnum),
    token("squ_", 30, Hex),
    token("sqp_", 30, Hex),
    token("sqa_", 30, Hex),
    token("sgp_", 30, Word),
    token("slk_", 30, Hex),
    token("sm_aat_", 14, Alnum),
    token("sm_pat_", 14, Alnum),
    token("sm_sat_", 14, Alnum),
    token("s-s4t2ud-", 40, Hex),
    token("AKCp", 40, Alnum),
    token("cmVmdGtu", 40, Alnum),
    token("PMAK-", 20, Word),
    token("pnu_", 30, Alnum),
    token("pnb_", 30, Alnum),
    token("tk-us-", 30, Word),
    token("signkey-prod-", 20, Hex),
    token("tr_prod_", 16, Alnum),
    token("tr_dev_", 16, Alnum),
    token("CFPAT-", 20, Word),
    token("unkey_", 16, Alnum),
    token("zpka_", 20, Word),
    token("rdme_", 30, Lower),
    token("waka_", 30, Word),
    token("tdst_", 40, Hex),
    short("ws-", 64, Hex),
    token("endr+", 16, Alnum),
    random("NF-", 32, Alnum),
    token("snyk_uat.", 20, Key),
    short("hawk.", 20, Alnum),
    token("retool_01", 20, Lower),
    token("secret-live-", 20, Word),
    token("secret-test-", 20, Word),
    short("secret-", 40, Alnum),
    token("ol_api_", 30, Alnum),
    token("cal_live_", 16, Hex),
    token("polar_oat_", 16, Alnum),
    // Packages.
    token("npm_", 30, Alnum),
    token("pypi-AgE", 30, Word),
    token("rubygems_", 40, Hex),
    token("CLOJARS_", 40, Alnum),
    short("oy2", 40, Lower),
    short("cio", 32, Alnum),
    // Observation.
    token("glsa_", 20, Word),
    token("glc_", 20, Key),
    token("hcaik_", 50, Lower),
    token("hcxik_", 50, Lower),
    token("hcalk_", 50, Lower),
    token("xaat-", 36, Word),
    token("xapt-", 36, Word),
    token("essu_", 40, Key),
    token("rootly_", 40, Hex),
    short("pk_", 34, Hex),
    token("sntrys_", 20, Key),
    token("sntryu_", 20, Hex),
    token("sntrya_", 20, Hex),
    token("NRAK-", 20, Upper),
    token("NRJS-", 16, Hex),
    token("NRII-", 20, Word),
    token("NRAA-", 20, Hex),
    token("NRRA-", 20, Hex),
    token("NRSP-", 20, Word),
    token("ddpat_", 20, Alnum),
    token("ddapp_", 20, Alnum),
    // Messages and mail.
    token("xoxb-", 10, Word),
    token("xoxa-", 10, Word),
    token("xoxp-", 10, Word),
    token("xoxr-", 10, Word),
    token("xoxs-", 10, Word),
    token("xoxe-", 10, Word),
    token("xoxe.xox", 10, Key),
    token("xoxc-", 10, Word),
    token("xoxd-", 10, Key),
    token("xoxo-", 10, Word),
    token("xapp-", 10, Word),
    token("xwfp-", 10, Word),
    random("mfa.", 60, Word),
    short("oauth:", 30, Lower),
    token("SG.", 30, Key),
    short("key-", 32, Hex),
    token("xkeysib-", 30, Word),
    token("xsmtpsib-", 30, Word),
    short("SK", 32, Hex),
    short("re_", 30, Word),
    short("md-", 22, Alnum),
    token("secret-token:", 16, Key),
    // Payments and shops.
    token("sk_live_", 12, Alnum),
    token("sk_test_", 12, Alnum),
    token("rk_live_", 12, Alnum),
    token("rk_test_", 12, Alnum),
    token("pk_live_", 12, Alnum),
    token("sk_prod_", 12, Alnum),
    token("sk_org_", 12, Word),
    token("whsec_", 16, Key),
    token("shpat_", 20, Alnum),
    token("shpca_", 20, Alnum),
    token("shppa_", 20, Alnum),
    token("shpss_", 20, Alnum),
    token("shptka_", 20, Alnum),
    token("sq0atp-", 20, Word),
    token("sq0csp-", 20, Word),
    token("sq0idp-", 20, Word),
    random("EAAA", 56, Word),
    random("EAAC", 80, Alnum),
    random("EAAM", 80, Alnum),
    token("IGQV", 60, Alnum),
    token("WPL_AP1.", 16, Key),
    token("FLWSECK_TEST-", 12, Hex),
    short("live_", 35, Hex),
    token("rzp_live_", 12, Alnum),
    token("FLWSECK", 20, Word),
    token("duffel_live_", 20, Word),
    token("duffel_test_", 20, Word),
    token("shippo_live_", 20, Hex),
    token("shippo_test_", 20, Hex),
    token("access-sandbox-", 30, Word),
    token("access-production-", 30, Word),
    token("EZAK", 50, Alnum),
    token("EZTK", 50, Alnum),
    // Work and documents.
    token("lin_api_", 20, Alnum),
    token("lin_oauth_", 20, Alnum),
    token("ntn_", 30, Alnum),
    short("secret_", 40, Alnum),
    token("figd_", 20, Word),
    token("figu_", 20, Word),
    token("figo_", 20, Word),
    token("pat-na1-", 30, Word),
    token("pat-eu1-", 30, Word),
    token("tfp_", 30, Word),
    token("dG9rO", 40, Key),
    token("sl.u.", 60, Key),
    short("sl.", 100, Word),
    token("fio-u-", 40, Word),
    short("API-", 26, Upper),
    short("sdk-", 36, Word),
    token("phx_", 40, Word),
    token("wandb_v1_", 40, Word),
    token("aio_", 26, Alnum),
    token("p8e-", 30, Alnum),
    // Sealed tokens, and the private keys of wallets.
    token("v1.local.", 60, Word),
    token("v2.local.", 60, Word),
    token("v3.local.", 60, Word),
    token("v4.local.", 60, Word),
    token("xprv", 90, Alnum),
    token("tprv", 90, Alnum),
    token("zprv", 90, Alnum),
    // Private keys and what signs, as they are written without their frames.
    token("LS0tLS1CRUdJTiBQUklW", 40, Key),
    token("LS0tLS1CRUdJTiBSU0EgUFJJ", 40, Key),
    token("LS0tLS1CRUdJTiBFQyBQ", 40, Key),
    token("LS0tLS1CRUdJTiBPUEVOU1NI", 40, Key),
    token("LS0tLS1CRUdJTiBFTkNSWVBU", 40, Key),
    token("b3BlbnNzaC1rZXktdjE", 40, Key),
    token("eyJhbGciOi", 20, Key),
    token("eyJ0eXAiOi", 20, Key),
    token("eyJraWQiOi", 20, Key),
    token("eyJlbmMiOi", 20, Key),
    token("eyJjdHkiOi", 20, Key),
    token("eyJqa3UiOi", 20, Key),
    token("eyJ4NXQiOi", 20, Key),
    token("eyJrIjoi", 30, Key),
    token("eyJ2ZXIiOi", 40, Key),
    token("eyJzdiI6I", 60, Key),
];

/// The secret that stands beside the id of a key, as Amazon gives them out: `AKIA… SECRET`.
pub(super) fn secret_of_pair(text: &[u8], token: &Token, start: usize) -> Option<std::ops::Range<usize>> {
    const ID_BYTES: usize = 16;
    const SECRET_BYTES: usize = 40;
    if !matches!(token.prefix, "AKIA" | "ASIA") {
        return None;
    }
    let end = start + super::run_within(&text[start..], ID_BYTES, |byte| Upper.has(byte));
    let rest = &text[end..];
    let is_between =
        |byte: u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | b':' | b',' | b';' | b'|' | b'"' | b'\'');
    let between = super::run_within(rest, 8, is_between);
    let secret = &rest[between..];
    let length = super::run_within(secret, SECRET_BYTES + 1, |b| {
        b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/')
    });
    let is_secret = between > 0 && length == SECRET_BYTES && super::value::is_random(&secret[..length]);
    is_secret.then(|| end + between..end + between + length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_named_once_and_long_enough_to_be_looked_for() {
        for (n, token) in TOKENS.iter().enumerate() {
            assert!(TOKENS[..n].iter().all(|other| other.prefix != token.prefix), "{}", token.prefix);
            assert!(token.prefix.len() >= 2 && token.rest_min >= 10, "{}", token.prefix);
        }
    }
}
