use crate::harness::{Folder, Run};

#[test]
fn reasons_in_three_forms() {
    let table = Run::new(&["reasons"]).go().code(0).stdout();
    assert!(table.starts_with("REASON "), "{table}");
    let json = Run::new(&["reasons", "--json"]).go().code(0).json();
    assert_eq!(json["reasons"].as_array().unwrap().len(), table.lines().count() - 1);
    assert!(Run::new(&["reasons", "--markdown"]).go().code(0).stdout().starts_with("| reason |"));
}

#[test]
fn explain_knows_other_names_too() {
    let page = Run::new(&["explain", "rate_limited"]).go().code(0).stdout();
    assert!(page.starts_with("# rate_limited\n"), "{page}");
    assert_eq!(Run::new(&["explain", "RateLimitExceeded"]).go().code(0).stdout(), page);
    assert_eq!(Run::new(&["explain", "timeout", "--json"]).go().code(0).json()["retry"], "plain");
}

#[test]
fn completions_for_every_shell_and_a_man_page_for_every_command() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        assert!(Run::new(&["completions", shell]).go().code(0).stdout().contains("classify"), "{shell}");
    }
    let folder = Folder::new("man");
    Run::new(&["man"]).arg(folder.path()).go().code(0);
    let pages: Vec<_> = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    for page in ["backstop.1", "backstop-classify.1", "backstop-rules-test.1"] {
        assert!(pages.contains(&page.to_owned()), "{page} in {pages:?}");
    }
}
