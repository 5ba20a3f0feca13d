use crate::world::{World, hostile_names};
use backstop_work::git::{ScriptEntry, commits_script};
use std::ffi::OsString;
use std::process::{Command, Output};

fn run(world: &World, entries: &[ScriptEntry]) -> Output {
    let file = world.top.join("commits.sh");
    std::fs::write(&file, commits_script(entries)).unwrap();
    let mut command = Command::new("sh");
    command.arg(&file).current_dir(world.root.join("dir")).envs(world.env.iter().map(|(k, v)| (k, v)));
    command.output().unwrap()
}

#[test]
fn any_name_and_any_message_goes_through_a_real_shell_unchanged() {
    let world = World::new();
    world.write("-old", "x");
    world.write("dir/b.txt", "changed\n");
    world.commit("old");
    std::fs::remove_file(world.root.join("-old")).unwrap();
    for name in hostile_names() {
        world.write(&name, "x\n");
    }
    world.write("strangers", "x");
    let message = "feat: it's `touch pwned` $(touch pwned) \"x\"\n\nEND_OF_MESSAGE_0\nEOF\n# kept\n\\ back\n"
        .to_owned();
    let entries = [
        ScriptEntry {
            message: message.clone(),
            paths: hostile_names(),
            deleted: vec!["-old".into()],
            unnamed: 0,
        },
        ScriptEntry {
            message: "nothing".into(),
            paths: vec!["never-there".into()],
            deleted: vec!["nor-this".into()],
            unnamed: 0,
        },
        ScriptEntry {
            message: "second".into(),
            paths: vec!["dir/b.txt".into(), "a.txt".into()],
            ..ScriptEntry::default()
        },
    ];
    world.write("dir/b.txt", "again\n");
    let before = world.head();
    let out = run(&world, &entries);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    assert_eq!(world.git(&["log", "--format=%s", &format!("{before}..")]).lines().count(), 2);
    let raw = world.git(&["cat-file", "commit", "HEAD^"]);
    assert!(raw.ends_with(message.trim_end()), "{raw}");
    let first = world.git(&["rev-parse", "HEAD^"]).parse().unwrap();
    let mut paths: Vec<OsString> =
        world.repo().changed_paths(&before, &first).unwrap().into_iter().map(|c| c.path).collect();
    let mut expected = hostile_names();
    expected.push("-old".into());
    paths.sort();
    expected.sort();
    assert_eq!(paths, expected);
    assert_eq!(world.status(), "?? strangers");
    // Running it again makes no second commit of the same.
    let head = world.head();
    assert!(run(&world, &entries).status.success());
    assert_eq!(world.head(), head);
}

#[test]
fn it_stops_where_something_else_is_staged() {
    let world = World::new();
    world.write("users", "x");
    world.git(&["add", "users"]);
    let entry = ScriptEntry { message: "m".into(), paths: vec!["users".into()], ..ScriptEntry::default() };
    let out = run(&world, &[entry]);
    assert!(!out.status.success());
    assert!(String::from_utf8_lossy(&out.stderr).contains("staged"));
}

#[test]
fn the_first_commit_of_a_repository_is_made_by_the_script() {
    let world = World::unborn();
    world.write("dir/x", "x");
    let entry =
        ScriptEntry { message: "first".into(), paths: vec!["dir/x".into()], ..ScriptEntry::default() };
    let out = run(&world, &[entry]);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    assert_eq!(world.git(&["log", "--format=%s"]), "first");
}
