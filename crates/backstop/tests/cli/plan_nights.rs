//! Whole nights under simulated time: what goes wrong in them, and what must hold in the morning.
#![cfg(target_os = "linux")]

use crate::plan_text::{PlanText, events, has, place, reasons};
use crate::simulated::{Simulated, begin, cut_off, done, limit, overloaded};
use std::collections::BTreeSet;

/// The gate of these projects: the Test Anything Protocol names each failed test.
const CHECK: &str = "n=0; bad=0\nfor t in t_*.sh; do n=$((n + 1)); if sh \"$t\" > /dev/null; then echo \"ok $n - $t\"; \
    else echo \"not ok $n - $t\"; bad=1; fi; done\necho \"1..$n\"\nexit $bad\n";

/// How a stub ends the Backstop that runs it: its process is in the mark of the run.
const KILL: &str = r#"pid=${BACKSTOP_RUN_MARK#*.}; kill -9 "${pid%%.*}"; sleep 5"#;

/// A project whose base is red: `t_old.sh` fails.
fn red_project(name: &str, plan: &PlanText, agents: &[(&str, &str)]) -> Simulated {
    let this = Simulated::new(name, plan, agents);
    this.project.file("plan.md", plan.text().replace("gates = []\n", ""));
    this.project.file("check.sh", CHECK);
    this.project.file("t_old.sh", "exit 1\n");
    this.project.file("t_good.sh", "true\n");
    this.project.file("shared.txt", "one\ntwo\nthree\n");
    this.project.sh("git add check.sh t_old.sh t_good.sh shared.txt && git commit -qm tests");
    this.project.settings("[gates.test]\ncheck = [\"sh\", \"check.sh\"]\n[exec]\ngrace = \"500ms\"\n");
    this
}

/// The tests that fail on a commit.
fn failing(this: &Simulated, commit: &str) -> BTreeSet<String> {
    let folder = this.project.beside(&format!("at-{commit}"));
    let line = format!(
        "mkdir -p {0} && git archive {commit} | tar -x -C {0} && cd {0} && sh check.sh | sed -n 's/^not ok [0-9]* - //p'",
        folder.display()
    );
    this.project.sh(&line).lines().map(str::to_owned).collect()
}

/// Runs it as a timer would: again, as long as it was killed. Gives the exit code.
fn through_the_night(this: &Simulated, flags: &[&str]) -> (Option<i32>, String) {
    for _ in 0..6 {
        let done = this.run(flags).go();
        if done.exit().is_some() {
            return (done.exit(), done.stderr());
        }
    }
    panic!("it was killed six times");
}

/// The agents of the scripted night. `first_limit` is how long the first session limit lasts.
fn agents(first_limit: u32) -> Vec<(&'static str, String)> {
    let claude = format!(
        r#"{begin}
case $BACKSTOP_PHASE in
  1) if [ $(calls 1) = 0 ]; then echo half > half.txt; {limited}; fi; echo one > one.txt;;
  4) if [ $(calls 4) -lt 3 ]; then echo '{{"type":"result","is_error":true,"result":"ENOSPC: no space left on device, write"}}'; exit 1; fi; echo four > four.txt;;
  5) if [ $(calls 5) = 0 ]; then echo half > five.txt; {KILL}; fi; echo five > five.txt;;
  6) pass 10800; echo six > six.txt;;
  7a) sed -i 's/two/two by a/' shared.txt;;
  8) if [ $(calls 8) = 0 ]; then {again}; fi; echo eight > eight.txt; echo true > t_old.sh;;
  9) if [ $(calls 9) = 0 ]; then echo 'exit 1' > t_old.sh; fi; echo nine > nine.txt;;
esac
{done}"#,
        begin = begin("claude"),
        limited = limit("claude", &first_limit.to_string()),
        again = limit("claude", "5400"),
        done = done("claude"),
    );
    let codex = format!(
        r#"{begin}
case $BACKSTOP_PHASE in
  2) [ -e $PLACE/cut ] || now > $PLACE/cut; if [ $(now) -lt $(( $(cat $PLACE/cut) + 3600 )) ]; then {cut}; fi; echo two > two.txt;;
  7b) sed -i 's/two/two by b/' shared.txt;;
esac
{done}"#,
        begin = begin("codex"),
        cut = cut_off("codex"),
        done = done("codex"),
    );
    let opencode = format!(
        "{}\nif [ $(calls 3) -lt 2 ]; then {}; fi; echo three > three.txt; {}",
        begin("opencode"),
        overloaded("opencode"),
        done("opencode")
    );
    let other = |agent: &str, file: &str, trouble: &str| {
        format!(
            "{}\nif [ $(calls {file}) = 0 ]; then {trouble}; fi; echo {file} > {file}.txt; {}",
            begin(agent),
            done(agent)
        )
    };
    vec![
        ("claude", claude),
        ("codex", codex),
        ("opencode", opencode),
        ("gemini", other("gemini", "ten", overloaded("gemini"))),
        ("qwen", other("qwen", "eleven", cut_off("qwen"))),
        ("copilot", other("copilot", "twelve", &limit("copilot", "1800"))),
    ]
}

fn night_plan() -> PlanText {
    PlanText::new()
        .phase("1", "", "agent = 'claude'")
        .phase("2", "", "agent = 'codex'")
        .beside("1")
        .phase("3", "", "agent = 'opencode'")
        .beside("1, 2")
        .phase("4", "1, 2, 3", "agent = 'claude'")
        .phase("5", "4", "agent = 'claude'")
        .phase("6", "5", "agent = 'claude'")
        .phase("7A", "6", "agent = 'claude'")
        .phase("7B", "6", "agent = 'codex'")
        .beside("7A")
        .phase("8", "7A, 7B", "agent = 'claude'")
        .phase("9", "8", "agent = 'claude'")
        .phase("10", "9", "agent = 'gemini'")
        .phase("11", "10", "agent = 'qwen'")
        .phase("12", "11", "agent = 'copilot'")
}

#[test]
fn a_night_with_everything_in_it_ends_complete_and_verified() {
    let agents = agents(8400);
    let agents: Vec<(&str, &str)> = agents.iter().map(|(name, script)| (*name, script.as_str())).collect();
    let this = red_project("night", &night_plan(), &agents);
    let base = this.project.sh("git rev-parse HEAD").trim().to_owned();
    let (code, said) = through_the_night(&this, &["--commit", "auto"]);
    assert_eq!(code, Some(0), "{said}");
    has(&said, &["COMPLETE  13 phases · 13 commits on main, each verified as it landed · ", " waits, "]);
    // Everything happened that was meant to.
    let seen: BTreeSet<String> = reasons(&this.project).into_iter().collect();
    for reason in ["rate_limited", "network_transient", "disk_full", "file_conflict"] {
        assert!(seen.contains(reason), "{reason} is not in {seen:?}\n{said}");
    }
    let faults = events(&this.project, "error.classified");
    let is_overload =
        |event: &serde_json::Value| event["fault"].to_string().to_lowercase().contains("overloaded");
    assert!(faults.iter().any(is_overload), "{said}");
    assert_eq!(events(&this.project, "run.resumed").len(), 1, "killed once");
    // Each commit was verified as it landed: none is redder than the base, and what phase 8 has
    // mended was not broken again by phase 9, which was retried for it.
    let before = failing(&this, &base);
    assert_eq!(before, BTreeSet::from(["t_old.sh".to_owned()]));
    let commits = this.project.sh(&format!("git rev-list --first-parent --reverse {base}..HEAD"));
    assert_eq!(commits.lines().count(), 13);
    for commit in commits.lines() {
        assert!(failing(&this, commit).is_subset(&before), "{commit} is redder than the base\n{said}");
    }
    assert!(failing(&this, "HEAD").is_empty(), "{said}");
    assert!(seen.contains("test_failure") || seen.contains("verification_mismatch"), "{seen:?}");
    // Nothing is lost, and both sides of the conflict had their turn.
    let files = this.project.sh("git ls-files");
    for file in [
        "one.txt",
        "two.txt",
        "three.txt",
        "four.txt",
        "five.txt",
        "six.txt",
        "eight.txt",
        "ten.txt",
        "eleven.txt",
        "twelve.txt",
    ] {
        assert!(files.lines().any(|known| known == file), "{file}");
    }
    has(&this.project.read("shared.txt"), &["two by"]);
    // What the first limit broke off is kept where the next attempt was told to look.
    let kept = this.project.sh("git for-each-ref --format='%(refname)' refs/backstop | grep '/1/1$'");
    has(&this.project.sh(&format!("git ls-tree --name-only {}", kept.trim())), &["half.txt"]);
    // Three session limits were waited for, each to its end.
    let waits: BTreeSet<u64> =
        events(&this.project, "wait.started").iter().map(|wait| wait["wait"].as_u64().unwrap()).collect();
    assert_eq!(waits.len(), 3, "{said}");
    assert!(this.seconds() > 8400 + 3600 + 10_800 + 1800, "{}", this.seconds());
}

#[test]
fn the_same_night_with_a_weekly_limit_halts_with_the_right_time() {
    let week = 5 * 24 * 3600;
    let agents = agents(week);
    let agents: Vec<(&str, &str)> = agents.iter().map(|(name, script)| (*name, script.as_str())).collect();
    let this = red_project("night-weekly", &night_plan(), &agents);
    let (code, said) = through_the_night(&this, &["--commit", "auto"]);
    assert_eq!(code, Some(3), "{said}");
    has(&said, &["is limited: anthropic, weekly limit, resets ", "--commit auto --at 20"]);
    let faults = events(&this.project, "error.classified");
    let resets = faults.iter().find_map(|event| event["fault"]["facts"]["resets_at"].as_str()).unwrap();
    let seconds =
        |text: &str| this.project.sh(&format!("date -u -d '{text}' +%s")).trim().parse::<i64>().unwrap();
    let ahead = seconds(resets) - seconds("now");
    assert!((i64::from(week) - 60..i64::from(week) + 120).contains(&ahead), "{resets}: {ahead}");
    // Those beside it were let end.
    assert!(
        this.project.sh("git ls-files").contains("three.txt") || !place(&this.project, "times-3").is_empty()
    );
}

/// A small generator of numbers: a night is the same for the same seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

/// What happens in one attempt of a phase: a line of shell that ends it, or lets it go on.
fn trouble(dice: &mut Dice, agent: &str, phase: &str) -> String {
    match dice.roll(13) {
        0 => limit(agent, &(60 + dice.roll(30_000)).to_string()),
        1 => limit(agent, &(60 + dice.roll(3_000)).to_string()),
        2 => overloaded(agent).to_owned(),
        3 => cut_off(agent).to_owned(),
        4 => "echo 'No space left on device (os error 28)' >&2; exit 1".to_owned(),
        // Work that breaks a test which passed, or adds one that fails; claimed to be complete.
        5 => format!("echo 'exit 1' > t_good.sh; echo {phase} > {phase}.txt; {}; exit 0", done(agent)),
        6 => format!("echo 'exit 1' > t_{phase}.sh; {}; exit 0", done(agent)),
        // A claim without work.
        7 => format!("{}; exit 0", done(agent)),
        8 => format!("echo half > {phase}.half; {KILL}"),
        9 => format!("pass {}", dice.roll(20_000)),
        // The user commits something meanwhile, if git lets them.
        10 => format!(
            "(cd \"$MAIN\" && echo {phase} > user-{phase}.txt && git add user-{phase}.txt && \
             git commit -qm mine && git rev-parse HEAD >> \"$PLACE/users\")"
        ),
        11 => overage(agent, 60 + dice.roll(9_000)),
        // Mends what was red before.
        _ => "echo true > t_old.sh".to_owned(),
    }
}

/// An agent that begins to use what costs extra, until its limit ends; of the others nobody knows.
fn overage(agent: &str, seconds: u64) -> String {
    if agent != "claude" {
        return ":".to_owned();
    }
    format!(
        r#"printf '{{"type":"rate_limit_event","rate_limit_info":{{"status":"allowed","resetsAt":%s,"rateLimitType":"five_hour","overageStatus":"allowed","isUsingOverage":true}}}}\n' $(( $(now) + {seconds} )); sleep 30; echo paid >> $PLACE/paid"#
    )
}

/// One random night.
fn night(seed: u64) {
    let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let mut plan = PlanText::new();
    let mut scripts: [String; 6] = std::array::from_fn(|_| String::new());
    let names = ["claude", "codex", "opencode", "gemini", "copilot", "qwen"];
    let phases = 2 + dice.roll(2);
    for n in 1..=phases {
        let which = usize::try_from(dice.roll(6)).unwrap();
        let (agent, id) = (names[which], n.to_string());
        let mut attempts = String::new();
        for at in 0..dice.roll(3) {
            attempts.push_str(&format!("if [ $n = {at} ]; then {}; fi\n", trouble(&mut dice, agent, &id)));
        }
        scripts[which].push_str(&format!("{id}) n=$(calls {id})\n{attempts}\necho done > {id}.txt;;\n"));
        let beside = dice.roll(2) == 0 && n > 1;
        let after = if n > 1 && !beside { (n - 1).to_string() } else { String::new() };
        plan = plan.phase(&id, &after, &format!("agent = '{agent}'"));
        if beside {
            plan = plan.beside(&(n - 1).to_string());
        }
    }
    let agents: Vec<(&str, String)> = names
        .into_iter()
        .zip(&scripts)
        .map(|(agent, script)| {
            (agent, format!("{}\ncase $BACKSTOP_PHASE in\n{script}esac\n{}", begin(agent), done(agent)))
        })
        .collect();
    let agents: Vec<(&str, &str)> = agents.iter().map(|(name, script)| (*name, script.as_str())).collect();
    let this = red_project(&format!("night-{seed}"), &plan, &agents);
    this.project.file("mine.txt", "the user's own\n");
    let base = this.project.sh("git rev-parse HEAD").trim().to_owned();
    let (code, said) = through_the_night(&this, &["--commit", "auto"]);
    let told = || format!("night {seed}\n{said}\n{}", plan.text());
    assert!(matches!(code, Some(0 | 3)), "{code:?} {}", told());
    // Never redder than the base, complete or not: only verified work lands.
    let before = failing(&this, &base);
    let head = failing(&this, "HEAD");
    assert!(head.is_subset(&before), "{head:?} {}", told());
    // Nothing that was finished is lost, nothing is there twice, and the user's file is as it was.
    let commits = this.project.sh(&format!("git log --no-merges --format=%H {base}..HEAD"));
    let made = events(&this.project, "commit.made");
    let users = place(&this.project, "users");
    assert_eq!(commits.lines().count(), made.len() + users.lines().count(), "{commits} {}", told());
    assert!(users.lines().all(|own| commits.lines().any(|known| known == own)), "{users} {}", told());
    // Nothing was paid for that nobody allowed.
    assert_eq!(place(&this.project, "paid"), "", "{}", told());
    let files = this.project.sh("git ls-files");
    for commit in &made {
        let file = format!("{}.txt", commit["operation"].as_str().unwrap());
        assert!(files.lines().any(|known| known == file), "{file} {}", told());
    }
    assert_eq!(this.project.read("mine.txt"), "the user's own\n");
    let entered = events(&this.project, "state.entered");
    let complete = entered.iter().filter(|event| event["state"] == "complete").count();
    assert!(code != Some(0) || u64::try_from(complete).unwrap() == phases, "{complete} {}", told());
    // A phase that claims to be complete has done something.
    assert!(code != Some(0) || u64::try_from(made.len()).unwrap() == phases, "{} {}", made.len(), told());
    // No wait was longer than allowed, and there were not more of them.
    for wait in events(&this.project, "wait.started") {
        assert!(wait["wait_ms"].as_u64().unwrap() <= (6 * 3600 + 60) * 1000, "{wait} {}", told());
        assert!(wait["wait"].as_u64().unwrap() <= 4, "{wait} {}", told());
    }
}

/// How many nights run at once.
const SIDE_BY_SIDE: u64 = 4;

/// How many nights there are, where `BACKSTOP_NIGHTS` does not say.
const NIGHTS: u64 = 100;

#[test]
fn random_nights_never_land_what_is_worse_lose_work_or_wait_too_long() {
    let nights = std::env::var("BACKSTOP_NIGHTS").ok().and_then(|text| text.parse().ok()).unwrap_or(NIGHTS);
    std::thread::scope(|scope| {
        for first in 0..SIDE_BY_SIDE {
            scope.spawn(move || (1 + first..=nights).step_by(4).for_each(night));
        }
    });
}
