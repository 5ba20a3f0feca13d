//! What was typed, what is meant, the nearest valid one; nothing is started.

use crate::harness::Project;

#[test]
fn mistakes_start_nothing_and_exit_125() {
    let project = Project::new("bad-exec");
    let cases: &[(&[&str], &[&str])] = &[
        (&["--timout", "3s"], &["--timout", "'--timeout'"]),
        (&["--profile", "comand"], &["`comand`", "did you mean `command`?"]),
        (&["--timeout", "10M"], &["did you mean `10m`?"]),
        (&["--timeout", "soon"], &["`soon` is not a duration"]),
        (&["--idle", "5 apples"], &["--idle", "`5 apples` is not a duration"]),
        (&["--deadline", "0"], &["--deadline"]),
        (&["--attempts", "0"], &["0", "1..=100"]),
        (&["--attempts", "many"], &["many"]),
        (&["--on", "rate_limted=retry"], &["rate_limted", "did you mean `rate_limited`?"]),
        (&["--on", "unknown=rety"], &["did you mean `retry`?"]),
        (&["--on", "unknown"], &["REASON=ACTION"]),
        (&["--on", "unknown=retry:1000"], &["retry:1000"]),
        (&["--log-format", "yaml"], &["yaml", "human"]),
        (&["--stdin", "x"], &["replay"]),
        (&["--rules", "no-such-file.toml"], &["cannot read no-such-file.toml"]),
        (&["--confirm", "x"], &["`x` is not a run id", "r-7f3a"]),
    ];
    for (flags, says) in cases {
        let done = project.exec(flags, "touch started").go().code(125);
        for part in *says {
            assert!(done.stderr().contains(part), "{flags:?}: {part} is not in\n{}", done.stderr());
        }
        assert_eq!(done.stdout(), "", "{flags:?}");
        assert!(!project.path().join("started").exists(), "{flags:?}");
    }
    let nothing = project.run(&["exec"]).go().code(125);
    assert!(nothing.stderr().contains("COMMAND"), "{}", nothing.stderr());
}

#[test]
fn other_commands_exit_2() {
    let project = Project::new("bad-others");
    for (args, says) in [
        (&["events", "--reason", "rate_limted"][..], "did you mean `rate_limited`?"),
        (&["events", "--since", "yesterday"], "`yesterday` is not a duration"),
        (&["events", "--kind", "decision.mad"], "did you mean `decision.made`?"),
        (&["runs", "--since", "10M"], "did you mean `10m`?"),
        (&["explain", "r-ffff"], "no run r-ffff is recorded"),
        (&["explain", "last"], "nothing has been run"),
        (&["deferred", "run", "7"], "it looks like d-1"),
        (&["deferred", "run", "d-7"], "`backstop deferred list`"),
        (&["clean", "--keep", "x"], "`x` is not a duration"),
        (&["clean", "--max", "10"], "`10` is not a size"),
    ] {
        let done = project.run(args).go().code(2);
        assert!(done.stderr().contains(says), "{args:?}: {}", done.stderr());
    }
    let elsewhere = project.run(&["trust"]).dir(std::path::Path::new("/")).go().code(2);
    assert!(elsewhere.stderr().contains("nothing to trust"), "{}", elsewhere.stderr());
}

#[test]
fn what_outsiders_write_does_not_act_on_the_terminal() {
    let project = Project::new("bad-terminal");
    let script =
        "printf 'npm error code ECONNRESET \\033]0;owned\\007\\033[2J\\342\\200\\256\\n' >&2; exit 1";
    let name = "\u{1b}]52;c;Zm9v\u{7}";
    project.run(&["exec", "--attempts", "1", "--caller", name, "--", "sh", "-c", script, name]).go().code(1);
    for args in [
        &["explain", "last"][..],
        &["events"],
        &["runs"],
        &["events", "--json"],
        &["explain", "last", "--markdown"],
    ] {
        let shown = project.run(args).go().code(0).stdout();
        assert!(!shown.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{args:?}: {shown:?}");
    }
}
