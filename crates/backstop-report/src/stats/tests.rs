//! How statistics look, in each rendering.

use super::*;
use crate::{Style, to_json};
use backstop_core::Reason;
use backstop_core::{Counts, Outcome, Reported};

fn tally(attempts: u64, succeeded: u64, lost_ms: (u64, u64, u64)) -> Counts {
    Counts {
        attempts,
        succeeded,
        errors: attempts - succeeded,
        failed_ms: lost_ms.0,
        attempts_ms: lost_ms.0 * 3,
        waited_ms: lost_ms.1,
        guard_ms: lost_ms.2,
        ..Counts::default()
    }
}

fn of_reason(errors: u64, retried: u64, cured: u64, failed_ms: u64, waited_ms: u64) -> Counts {
    Counts { errors, retried, cured, failed_ms, waited_ms, ..Counts::default() }
}

fn report() -> StatsReport {
    let at = Timestamp::from_millis;
    StatsReport {
        models: Vec::new(),
        since: Some(at(1_759_395_200_000)),
        stats: Stats {
            used: AgentUse { tokens_in: 1_200_000, tokens_out: 40_000, cost_millionths: Some(4_104_999) },
            runs: vec![(Outcome::Done, 398), (Outcome::Failed, 9), (Outcome::Lost, 1)],
            runs_open: 1,
            total: Counts {
                retried: 70,
                cured: 61,
                lost: 1,
                ..tally(540, 451, (7_500_000, 1_152_000, 720_000))
            },
            reasons: vec![
                (Reason::NetworkTransient, of_reason(62, 60, 58, 900_000, 1_140_000)),
                (Reason::TestFailure, of_reason(20, 0, 0, 6_000_000, 0)),
                (Reason::RateLimited, of_reason(5, 10, 3, 2_000, 12_000)),
                (Reason::Unknown, of_reason(2, 0, 0, 1_000, 0)),
            ],
            operations: vec![
                ("npm test".into(), tally(120, 79, (6_200_000, 700_000, 0))),
                ("evil\x1b[2J \"x\\y\"\n".into(), tally(3, 1, (1_300_000, 452_000, 720_000))),
                ("cargo build".into(), tally(397, 351, (0, 0, 0))),
                ("true".into(), tally(9, 9, (0, 0, 0))),
            ],
            operations_left_out: 2,
            days: vec![
                (at(1_759_881_600_000), tally(20, 20, (0, 0, 0))),
                (at(1_759_968_000_000), tally(500, 411, (7_500_000, 1_152_000, 720_000))),
            ],
            reported: Reported::default(),
        },
        now: None,
        signatures: vec![SignatureHistory {
            signature: "connect ECONNREFUSED <n>".into(),
            reason: Reason::NetworkTransient,
            seen: 62,
            retried: 60,
            cured: 58,
            first_at: at(1_759_000_000_000),
            last_at: at(1_760_000_000_000),
        }],
    }
}

#[test]
fn ten_lines_say_where_the_time_went() {
    insta::assert_snapshot!(stats(&report(), Style::PLAIN), @r#"
    time lost: 2h 36m (2h 05m in attempts that failed, 19m 12s waiting to try again, 12m 00s waiting for rate limits)
    409 runs since 2025-10-02 08:53:20 UTC: 398 done, 9 failed, 1 lost, 1 not ended
    89 of 540 attempts failed (16.5 %) · 1 of them lost · cured by retry: 61 of 70 (87.1 %)
    agents used 1240000 tokens, $4.10
    by reason (1 more: `backstop stats --by reason`):
      test_failure       1h 40m   seen 20 times
      network_transient  34m 00s  seen 62 times, cured by retry: 58 of 60 (96.7 %)
      rate_limited       14 s     seen 5 times, cured by retry: 3 of 10 (30 %)
    by operation:
      npm test         1h 55m   41 of 120 attempts failed (34.2 %)
      evil\e[2J "x\y"  41m 12s  2 of 3 attempts failed (66.7 %)
      cargo build      0 ms     46 of 397 attempts failed (11.6 %)
    most seen in all projects: "connect ECONNREFUSED <n>" (network_transient), 62 times, cured by retry: 58 of 60 (96.7 %)
    "#);
}

#[test]
fn nothing_is_one_sentence() {
    let empty = StatsReport::default();
    assert_eq!(stats(&empty, Style::PLAIN).lines().count(), 1);
    assert_eq!(stats_by(&empty, StatsBy::Day, Style::PLAIN), stats(&empty, Style::PLAIN));
    let since = StatsReport { since: Some(Timestamp::from_millis(0)), ..StatsReport::default() };
    assert_eq!(stats(&since, Style::PLAIN), "nothing is recorded here since 1970-01-01 00:00:00 UTC\n");
    let sums = Stats { runs: vec![(Outcome::Done, 1)], total: tally(1, 1, (0, 0, 0)), ..Stats::default() };
    let fine = StatsReport { stats: sums, ..StatsReport::default() };
    insta::assert_snapshot!(stats(&fine, Style::PLAIN), @"
    no time was lost: nothing failed, and nothing had to wait
    1 run: 1 done
    0 of 1 attempt failed (0 %)
    ");
}

#[test]
fn reports_of_hooks_only_are_not_called_nothing() {
    let at = |hours: i64| Timestamp::from_millis(hours * 3_600_000);
    let reported = Reported {
        errors: 10,
        last_hour: 2,
        first: Some(at(0)),
        reasons: vec![(Reason::NetworkTransient, 6), (Reason::AuthError, 3), (Reason::NetworkPermanent, 1)],
        outcomes: vec![(Outcome::Failed, 4), (Outcome::Deferred, 6)],
    };
    let sums = Stats {
        runs: reported.outcomes.clone(),
        total: Counts { errors: 10, ..Counts::default() },
        reasons: vec![(Reason::NetworkTransient, Counts { errors: 6, ..Counts::default() })],
        reported,
        ..Stats::default()
    };
    let report = StatsReport { stats: sums, now: Some(at(48)), ..StatsReport::default() };
    insta::assert_snapshot!(stats(&report, Style::PLAIN), @"
    10 errors; how much time they took is not known
    10 runs: 4 failed, 6 deferred
    10 errors reported by hooks: 6 transient (60 %), 4 permanent (40 %) · 2 in the last hour · 5.0 a day
    by reason:
      network_transient  0 ms  seen 6 times
    ");
    let page = stats_prometheus(&report);
    for line in [
        "backstop_reported_errors_total{reason=\"network_transient\",class=\"transient\"} 6",
        "backstop_reported_errors_total{reason=\"auth_error\",class=\"permanent\"} 3",
        "backstop_reports_total{outcome=\"failed\"} 4",
        "# TYPE backstop_reported_errors_last_hour gauge",
        "backstop_reported_errors_last_hour 2",
    ] {
        assert!(page.lines().any(|given| given == line), "{line}\n{page}");
    }
    assert_eq!(stats_json(&report)["reported"]["last_hour"], 2);
}

#[test]
fn each_table_has_its_columns() {
    let all: String = [StatsBy::Reason, StatsBy::Class, StatsBy::Operation, StatsBy::Day]
        .map(|by| stats_by(&report(), by, Style::PLAIN))
        .join("\n");
    insta::assert_snapshot!(all, @r#"
    REASON             ERRORS  SHARE   RETRIED  CURED  FAILED FOR  WAITED
    network_transient  62      69.7 %  60       58     15m 00s     19m 00s
    test_failure       20      22.5 %  0        0      1h 40m      0 ms
    rate_limited       5       5.6 %   10       3      2 s         12 s
    unknown            2       2.2 %   0        0      1 s         0 ms

    CLASS      ERRORS  SHARE   RETRIED  CURED  FAILED FOR  WAITED
    transient  67      75.3 %  70       61     15m 02s     19m 12s
    permanent  22      24.7 %  0        0      1h 40m      0 ms

    OPERATION        ATTEMPTS  FAILED  RATE    RETRIED  CURED  FAILED FOR  WAITED
    npm test         120       41      34.2 %  0        0      1h 43m      11m 40s
    evil\e[2J "x\y"  3         2       66.7 %  0        0      21m 40s     19m 32s
    cargo build      397       46      11.6 %  0        0      0 ms        0 ms
    true             9         0       0 %     0        0      0 ms        0 ms
    and 2 more

    DAY         ATTEMPTS  FAILED  RATE    RETRIED  CURED  FAILED FOR  WAITED
    2025-10-09  500       89      17.8 %  0        0      2h 05m      31m 12s
    2025-10-08  20        0       0 %     0        0      0 ms        0 ms
    "#);
}

#[test]
fn prometheus_reads_it() {
    let text = stats_prometheus(&report());
    insta::assert_snapshot!(text, @r#"
    # HELP backstop_runs_total Runs that ended, by outcome.
    # TYPE backstop_runs_total counter
    backstop_runs_total{outcome="done"} 398
    backstop_runs_total{outcome="failed"} 9
    backstop_runs_total{outcome="lost"} 1
    # HELP backstop_attempts_total Attempts that ended, by operation and result.
    # TYPE backstop_attempts_total counter
    backstop_attempts_total{operation="npm test",result="success"} 79
    backstop_attempts_total{operation="npm test",result="failure"} 41
    backstop_attempts_total{operation="evil\\e[2J \"x\\y\"\n",result="success"} 1
    backstop_attempts_total{operation="evil\\e[2J \"x\\y\"\n",result="failure"} 2
    backstop_attempts_total{operation="cargo build",result="success"} 351
    backstop_attempts_total{operation="cargo build",result="failure"} 46
    backstop_attempts_total{operation="true",result="success"} 9
    backstop_attempts_total{operation="(others)",result="success"} 11
    backstop_attempts_total{operation="(others)",result="lost"} 1
    # HELP backstop_errors_total Errors that were classified, by reason and class.
    # TYPE backstop_errors_total counter
    backstop_errors_total{reason="network_transient",class="transient"} 62
    backstop_errors_total{reason="test_failure",class="permanent"} 20
    backstop_errors_total{reason="rate_limited",class="transient"} 5
    backstop_errors_total{reason="unknown",class="permanent"} 2
    # HELP backstop_reported_errors_total Errors that hooks reported, by reason and class.
    # TYPE backstop_reported_errors_total counter
    # HELP backstop_reports_total Reports of hooks, by outcome.
    # TYPE backstop_reports_total counter
    # HELP backstop_reported_errors_last_hour Errors that hooks reported in the last hour.
    # TYPE backstop_reported_errors_last_hour gauge
    backstop_reported_errors_last_hour 0
    # HELP backstop_retries_total Recoveries that were tried, by the reason they were tried for.
    # TYPE backstop_retries_total counter
    backstop_retries_total{reason="network_transient"} 60
    backstop_retries_total{reason="test_failure"} 0
    backstop_retries_total{reason="rate_limited"} 10
    backstop_retries_total{reason="unknown"} 0
    # HELP backstop_cured_total Recoveries that helped, by the reason they were tried for.
    # TYPE backstop_cured_total counter
    backstop_cured_total{reason="network_transient"} 58
    backstop_cured_total{reason="test_failure"} 0
    backstop_cured_total{reason="rate_limited"} 3
    backstop_cured_total{reason="unknown"} 0
    # HELP backstop_attempt_seconds_total Time that attempts took, failed ones included.
    # TYPE backstop_attempt_seconds_total counter
    backstop_attempt_seconds_total 22500.000
    # HELP backstop_failed_attempt_seconds_total Time that failed attempts took.
    # TYPE backstop_failed_attempt_seconds_total counter
    backstop_failed_attempt_seconds_total 7500.000
    # HELP backstop_wait_seconds_total Time waited, to try again or for a rate limit.
    # TYPE backstop_wait_seconds_total counter
    backstop_wait_seconds_total{for="retry"} 1152.000
    backstop_wait_seconds_total{for="guard"} 720.000
    "#);
    // Every sample belongs to the metric that was declared last, and every metric once.
    let mut declared = Vec::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert_eq!(kind, if name.ends_with("_total") { "counter" } else { "gauge" }, "{name}");
            assert!(!declared.contains(&name), "{name}");
            declared.push(name);
        } else if !line.starts_with("# HELP ") {
            let (sample, value) = line.rsplit_once(' ').unwrap();
            assert_eq!(sample.split('{').next(), declared.last().copied(), "{line}");
            assert!(value.parse::<f64>().is_ok(), "{line}");
        }
    }
    assert_eq!(stats_prometheus(&StatsReport::default()).matches("# TYPE").count(), declared.len());
}

#[test]
fn programs_get_all_of_it() {
    let json = stats_json(&report());
    assert_eq!(json["total"]["failed"], 89);
    assert_eq!(json["runs"]["outcomes"]["done"], 398);
    assert_eq!(json["classes"][0]["class"], "transient");
    assert_eq!(json["classes"][0]["errors"], 67);
    assert_eq!(json["days"][1]["day"], "2025-10-09");
    assert!(json["reasons"][0]["error_rate"].is_null());
    assert!(!to_json(&json).contains('\x1b'));
}

#[test]
fn a_share_in_percent() {
    let shown = [(1, 3), (1, 1), (0, 5), (1, 0), (1, 1000), (u64::MAX, u64::MAX)].map(|(a, b)| percent(a, b));
    assert_eq!(shown, ["33.3 %", "100 %", "0 %", "-", "0.1 %", "100 %"]);
}
