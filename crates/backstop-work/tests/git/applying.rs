use crate::world::{World, executable, hostile_names, write};
use backstop_work::git::{Applied, Sha};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

fn changed(world: &World, base: &Sha) -> Sha {
    world.worked(base, "tip", |path| {
        write(&path.join("a.txt"), "changed\n");
        executable(&path.join("tool"));
        std::fs::remove_file(path.join("dir/b.txt")).unwrap();
        std::fs::remove_file(path.join("becomes-folder")).unwrap();
        write(&path.join("becomes-folder/inside"), "x\n");
        std::fs::remove_dir_all(path.join("becomes-file")).unwrap();
        write(&path.join("becomes-file"), "x\n");
        symlink("a.txt", path.join("link")).unwrap();
        write(&path.join("PLAN.md"), "- [x] x\n");
        for name in hostile_names() {
            write(&path.join(name), "x\n");
        }
    })
}

fn world() -> (World, Sha, Sha) {
    let world = World::new();
    world.write("tool", "#!/bin/sh\n");
    world.write("becomes-folder", "x\n");
    world.write("becomes-file/deep/inside", "x\n");
    world.write("PLAN.md", "- [ ] x\n");
    let base = world.commit("more");
    let tip = changed(&world, &base);
    (world, base, tip)
}

/// Whether the user's files are those of a commit.
fn differs(world: &World, tip: &Sha) -> String {
    let index = world.top.join("index");
    let mut command = std::process::Command::new("git");
    command.current_dir(&world.root).env("GIT_INDEX_FILE", &index).args(["add", "-A"]);
    assert!(command.status().unwrap().success());
    let mut command = std::process::Command::new("git");
    command.current_dir(&world.root).env("GIT_INDEX_FILE", &index);
    let out = command.args(["diff", "--cached", "--name-status", tip.as_str()]).output().unwrap();
    std::fs::remove_file(index).unwrap();
    String::from_utf8(out.stdout).unwrap()
}

#[test]
fn the_users_files_become_those_of_the_tip_and_nothing_is_committed_or_staged() {
    let (world, base, tip) = world();
    let plan = world.root.join("PLAN.md");
    let before = std::fs::read(world.root.join(".git/index")).unwrap();
    let applied = world.repo().apply_tree(&base, &tip, &[&plan]).unwrap();
    let Applied::Done { paths, nested } = applied else { panic!("{applied:?}") };
    assert_eq!((paths.len(), nested.len()), (hostile_names().len() + 8, 0));
    assert_eq!(std::fs::read(world.root.join(".git/index")).unwrap(), before);
    assert_eq!(differs(&world, &tip), "M\tPLAN.md\n");
    assert_eq!(world.head(), base);
    assert!(world.root.join("tool").metadata().unwrap().permissions().mode() & 0o111 != 0);
    assert!(world.root.join("link").is_symlink());
    assert!(!world.root.join("dir").exists());
    assert!(!world.root.join(".git/backstop-apply").exists());
    // And again.
    let again = world.repo().apply_tree(&base, &tip, &[&plan]).unwrap();
    assert!(matches!(again, Applied::Done { .. }));
}

#[test]
fn after_a_crash_at_any_path_it_goes_on() {
    let (world, base, tip) = world();
    let repo = world.repo();
    let all = repo.changed_paths(&base, &tip).unwrap();
    for done in 0..all.len() {
        world.git(&["reset", "-q", "--hard", base.as_str()]);
        world.git(&["clean", "-ffdq"]);
        // What a crash leaves: deletions come first, then files in order, one of them still on its
        // way.
        let deleted: Vec<_> = all.iter().filter(|c| c.how == backstop_work::git::How::Deleted).collect();
        for change in deleted.iter().take(done) {
            std::fs::remove_file(world.root.join(&change.path)).unwrap();
        }
        if done > deleted.len() {
            world.write("a.txt", "changed\n");
            write(&world.root.join(".git/backstop-apply/half"), "x");
        }
        let applied = repo.apply_tree(&base, &tip, &[]).unwrap();
        assert!(matches!(applied, Applied::Done { .. }), "{done}: {applied:?}");
        assert_eq!(differs(&world, &tip), "", "{done}");
        assert_eq!(repo.apply_tree(&base, &tip, &[]).unwrap(), applied);
    }
}

#[test]
fn if_one_file_is_the_users_nothing_is_touched() {
    type Edit = fn(&Path);
    let edits: [(&str, Edit); 7] = [
        ("a.txt", |root| write(&root.join("a.txt"), "the user's\n")),
        ("a space", |root| write(&root.join("a space"), "untracked\n")),
        ("dir/b.txt", |root| write(&root.join("dir/b.txt"), "the user's\n")),
        ("becomes-file", |root| write(&root.join("becomes-file/deep/users"), "x\n")),
        ("a.txt", |root| executable(&root.join("a.txt"))),
        ("link", |root| symlink("elsewhere", root.join("link")).unwrap()),
        ("dir with space/[x]", |root| {
            let outside = root.parent().unwrap().join("outside");
            std::fs::create_dir(&outside).unwrap();
            symlink(outside, root.join("dir with space")).unwrap();
        }),
    ];
    for (path, edit) in edits {
        let (world, base, tip) = world();
        edit(&world.root);
        let before = world.status();
        let applied = world.repo().apply_tree(&base, &tip, &[]).unwrap();
        let Applied::Refused { files } = applied else { panic!("{path}: {applied:?}") };
        assert_eq!(files, [PathBuf::from(path)]);
        assert_eq!(world.status(), before);
    }
}

#[test]
fn line_ends_are_written_as_the_user_has_them() {
    let world = World::new();
    world.git(&["config", "core.autocrlf", "true"]);
    world.write("windows.txt", "one\r\ntwo\r\n");
    let base = world.commit("windows");
    let tip = world.worked(&base, "tip", |path| write(&path.join("windows.txt"), "one\r\nthree\r\n"));
    assert_eq!(world.show(&tip, "windows.txt").as_deref(), Some("one\nthree\n"));
    let applied = world.repo().apply_tree(&base, &tip, &[]).unwrap();
    assert!(matches!(applied, Applied::Done { .. }), "{applied:?}");
    assert_eq!(world.read("windows.txt"), "one\r\nthree\r\n");
}

#[test]
fn a_submodule_is_left_and_told() {
    let world = World::new();
    let library = World::new();
    world.git(&["submodule", "add", "-q", library.root.to_str().unwrap(), "lib"]);
    let base = world.commit("with a submodule");
    world.git(&["submodule", "deinit", "-q", "-f", "lib"]);
    let tip = world.worked(&base, "tip", |path| {
        world.git_in(path, &["submodule", "update", "-q", "--init"]);
        write(&path.join("lib/x"), "x");
        world.commit_in(&path.join("lib"), "inside");
        write(&path.join("a.txt"), "changed\n");
    });
    let applied = world.repo().apply_tree(&base, &tip, &[]).unwrap();
    assert_eq!(applied, Applied::Done { paths: vec!["a.txt".into()], nested: vec!["lib".into()] });
}
