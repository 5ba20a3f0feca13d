//! Plans when nothing can be recorded: what is not on record does not begin, and nothing is lost.
#![cfg(target_os = "linux")]

use crate::harness::{Project, in_a_room};
use crate::plan_text::{PlanText, run};

#[test]
fn a_store_that_fills_up_stops_the_plan_and_room_lets_it_go_on() {
    let project = Project::git("plan-store-full");
    let state = project.state();
    std::fs::create_dir_all(&state).unwrap();
    // The first time, it fills the disk that the store is on.
    let fill = format!(
        "[ -e {filled} ] || {{ touch {filled}; dd if=/dev/zero of={state}/filler bs=1k 2>/dev/null; }}; echo one > one.txt",
        filled = project.beside("filled").display(),
        state = state.display()
    );
    PlanText::new().sh("1", "", &fill).sh("2", "1", "echo two > two.txt").write(&project);
    let script = format!(
        "mount -t tmpfs -o size=4m,mode=700 tmpfs {state} || exit 90; run='{bin} run plan.md --commit auto'; \
         $run > ../out1 2> ../err1; echo $? > ../code1; $run > ../out2 2> ../err2; echo $? > ../code2; \
         git log --format=%s > ../log2; rm -f {state}/filler; {bin} unfreeze --why room || exit 91; $run > ../out3 2> ../err3; echo $? > ../code3; \
         git log --format=%s > ../log3",
        state = state.display(),
        bin = env!("CARGO_BIN_EXE_backstop"),
    );
    in_a_room(&script, || project.program("unshare", &[]));
    let read = |name: &str| std::fs::read_to_string(project.beside(name)).unwrap_or_default();
    assert_eq!(read("code1"), "1\n", "{}", read("err1"));
    assert!(read("err1").contains("hint: "), "{}", read("err1"));
    assert!(read("err1").contains("this project is frozen (disk_full)"), "{}", read("err1"));
    // While it is full nothing begins.
    assert_eq!(read("code2"), "75\n", "{}", read("err2"));
    assert!(!read("log2").contains("Phase 2"), "{}", read("log2"));
    assert_eq!(read("code3"), "0\n", "{}", read("err3"));
    let commits: Vec<String> = read("log3").lines().map(str::to_owned).collect();
    assert_eq!(commits, ["Phase 2: Step 2", "Phase 1: Step 1", "base"], "each commit is there once");
}

#[test]
fn state_that_is_removed_while_a_plan_runs_stops_it_and_is_told_as_what_it_is() {
    for flags in [&["--commit", "auto", "--isolation", "none"][..], &["--commit", "auto"]] {
        let project = Project::git(&format!("plan-no-state-{}", flags.len()));
        let script = format!("rm -rf {}; echo one > one.txt", project.state().display());
        PlanText::new().sh("1", "", &script).sh("2", "1", "echo two > two.txt").write(&project);
        project.sh("git add -A; git commit -q -m plan");
        let done = run(&project, flags).go();
        let words = done.stdout() + &done.stderr();
        assert!(matches!(done.exit(), Some(1 | 3)), "{:?} {words}", done.exit());
        assert!(words.contains("was removed while this ran"), "{words}");
        assert!(!words.contains("COMPLETE") && !words.contains("panicked"), "{words}");
        assert!(!project.path().join("two.txt").exists(), "nothing begins that cannot be recorded");
        // The same command starts anew.
        let plain = PlanText::new().sh("1", "", "echo one > one.txt").sh("2", "1", "echo two > two.txt");
        plain.write(&project);
        run(&project, &[flags, &["--allow-dirty"]].concat()).go().code(0);
    }
}

#[test]
fn what_a_full_disk_cut_off_while_it_landed_is_taken_back_and_lands_later() {
    let project = Project::git("plan-repo-full");
    let script = "echo one > a1.txt; head -c 5000000 /dev/urandom > big";
    PlanText::new().sh("1", "", script).write(&project);
    // The repository alone is on the small disk; it is a copy there.
    let script = format!(
        "mkdir ../disk; mount -t tmpfs -o size=6m,mode=700 tmpfs ../disk || exit 90; cp -r . ../disk/; cd ../disk; \
         run='{bin} run plan.md --commit auto'; $run > ../../out1 2>&1; echo $? > ../../code1; \
         git status --short -uall > ../../left; mount -o remount,size=80m ../disk || exit 91; \
         {bin} unfreeze --why room > /dev/null 2>&1; $run > ../../out2 2>&1; echo $? > ../../code2; \
         git log --format=%s > ../../log; wc -c < big > ../../bytes",
        bin = env!("CARGO_BIN_EXE_backstop"),
    );
    let script = script.replace("../../", &format!("{}/", project.beside("").display()));
    in_a_room(&script, || project.program("unshare", &[]));
    let read = |name: &str| std::fs::read_to_string(project.beside(name)).unwrap_or_default();
    assert_eq!(read("code1"), "3\n", "{}", read("out1"));
    assert!(read("out1").contains("disk_full") || read("out1").contains("disk is full"), "{}", read("out1"));
    assert!(!read("out1").contains("changes of yours"), "{}", read("out1"));
    assert!(!read("left").contains("big") && !read("left").contains("a1.txt"), "{}", read("left"));
    assert_eq!(read("code2"), "0\n", "{}", read("out2"));
    assert_eq!((read("log"), read("bytes")), ("Phase 1: Step 1\nbase\n".into(), "5000000\n".into()));
}
