//! How often git is asked, and that what is known without it is right.

use crate::world::{World, executable, write};
use backstop_work::git::{Changed, How, Landing, Repo, Settings, Sha, Slot, attempt_ref, tip_ref};

/// A repository, and how many processes of git it has started.
struct Counted {
    repo: Repo,
    calls: std::path::PathBuf,
}

impl Counted {
    fn of(world: &World) -> Self {
        let (calls, program) = (world.top.join("calls"), world.top.join("counting git"));
        write(&program, format!("#!/bin/sh\necho . >> '{}'\nexec git \"$@\"\n", calls.display()));
        executable(&program);
        let repo = Repo::find_with(&world.root, Settings { program, ..world.settings() }).unwrap().unwrap();
        Self { repo, calls }
    }

    fn count<T>(&self, what: impl FnOnce() -> T) -> (T, usize) {
        let _ = std::fs::remove_file(&self.calls);
        let done = what();
        (done, std::fs::read_to_string(&self.calls).unwrap_or_default().lines().count())
    }
}

/// What a phase does with its slot when its work is done: it is saved, committed and landed.
fn phase(repo: &Repo, slot: &Slot, base: &Sha, name: &str) -> Sha {
    let run = "r-0001".parse().unwrap();
    let state = slot.state(base).unwrap();
    let saved = slot.save_state(state, base, &attempt_ref(run, &name.parse().unwrap(), 1), name).unwrap();
    let made = repo.commit_saved_in(slot, &saved.tree, base, name).unwrap();
    let tip = tip_ref(run);
    let before = repo.read_ref(&tip).unwrap();
    assert!(repo.set_ref(&tip, &made.sha, before.as_ref()).unwrap());
    assert_eq!(repo.land_ff(Some("refs/heads/main"), base, &made.sha).unwrap(), Landing::Done);
    made.sha
}

#[test]
fn a_later_phase_asks_little_of_git() {
    let world = World::new();
    world.write("PLAN.md", "- [ ] x\n");
    let mut base = world.commit("plan");
    let counted = Counted::of(&world);
    let mut slot = counted.repo.add_slot(&world.top.join("slots/0"), &base, "backstop test").unwrap();
    slot.exclude(&["PLAN.md".into()]);
    let mut counts = Vec::new();
    for n in 0..4 {
        write(&slot.path().join(format!("made.{n}")), "work\n");
        let (made, calls) = counted.count(|| phase(&counted.repo, &slot, &base, &format!("p{n}")));
        assert_eq!(world.head(), made);
        assert_eq!(world.show(&made, &format!("made.{n}")).as_deref(), Some("work\n"));
        base = made;
        counts.push(calls);
    }
    assert!(counts[1..].iter().all(|calls| *calls <= 14), "{counts:?}");
    assert_eq!(world.status(), "");
}

#[test]
fn what_is_staged_or_restored_after_a_commit_of_ours_is_seen() {
    let world = World::new();
    world.write("PLAN.md", "- [ ] x\n");
    let base = world.commit("plan");
    let repo = world.repo();
    let mut slot = world.slot(&base);
    slot.exclude(&["PLAN.md".into()]);
    write(&slot.path().join("work"), "x\n");
    let first = phase(&repo, &slot, &base, "first");
    // Ignored, and insisted on; the plan is nobody's.
    write(&slot.path().join("kept.log"), "x");
    world.git_in(slot.path(), &["add", "-f", "kept.log"]);
    write(&slot.path().join("PLAN.md"), "- [x] x\n");
    let state = slot.state(&first).unwrap();
    let saved = slot.save_state(state, &first, "refs/backstop/r-0001/second/1", "second").unwrap();
    assert_eq!(saved.changed, [Changed { path: "kept.log".into(), how: How::Added }]);
    let second = repo.commit_saved_in(&slot, &saved.tree, &first, "second").unwrap().sha;
    assert_eq!(std::fs::read_to_string(slot.path().join("PLAN.md")).unwrap(), "- [ ] x\n");
    assert_eq!(world.show(&second, "PLAN.md").as_deref(), Some("- [ ] x\n"));
    assert_eq!(world.git_in(slot.path(), &["status", "--porcelain"]), "");
    // Touched and not changed: no look takes it for work, however many there are.
    for _ in 0..10 {
        write(&slot.path().join("work"), "x\n");
        assert_eq!(slot.state(&second).unwrap().tree, repo.tree_of(&second).unwrap());
    }
    write(&slot.path().join("work"), "y\n");
    assert_ne!(slot.state(&second).unwrap().tree, repo.tree_of(&second).unwrap());
}

#[test]
fn refs_are_read_as_files_where_they_are_files() {
    let world = World::new();
    let first = world.head();
    let counted = Counted::of(&world);
    let repo = &counted.repo;
    let asked = |what: &dyn Fn() -> Option<Sha>| counted.count(what);
    let head = || repo.head().unwrap().sha;
    let main = || repo.read_ref("refs/heads/main").unwrap();
    assert_eq!(asked(&head), (Some(first.clone()), 0));
    assert_eq!(asked(&main), (Some(first.clone()), 0));
    world.git(&["pack-refs", "--all"]);
    assert_eq!(asked(&head), (Some(first.clone()), 1));
    assert_eq!(asked(&main), (Some(first.clone()), 1));
    // The file counts, whatever is packed.
    world.write("a.txt", "other\n");
    let second = world.commit("second");
    assert_eq!(asked(&head), (Some(second.clone()), 0));
    world.git(&["checkout", "-q", "--detach", first.as_str()]);
    assert_eq!(asked(&head), (Some(first), 0));
    assert_eq!(asked(&main), (Some(second.clone()), 0));
    // A ref that names another, and one that is not there.
    world.git(&["symbolic-ref", "refs/heads/alias", "refs/heads/main"]);
    assert_eq!(asked(&|| repo.read_ref("refs/heads/alias").unwrap()), (Some(second), 1));
    assert_eq!(asked(&|| repo.read_ref("refs/backstop/r-0001/tip").unwrap()), (None, 1));
    world.git(&["checkout", "-q", "--orphan", "new"]);
    assert_eq!(asked(&head), (None, 1));
}
