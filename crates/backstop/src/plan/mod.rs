//! `backstop run`: a plan, from what was typed to how it ended.

mod admin;
mod asks;
mod begin;
mod equip;
mod ground;
mod read;
mod shared;
mod summary;
mod watch;

pub(crate) use admin::run as plan;

use crate::cli::{self, LogFormat};
use crate::context::{self, Context};
use crate::error::{CliError, DEFERRED, DONE, HALTED, INTERRUPTED};
use crate::{aftermath, classify, deferred, freeze, host, terminal};
use backstop_config::Given;
use backstop_core::{End, Parallel, RetryWhen, Rules, SafeText, shell};
use backstop_plan::observers::PlanFiles;
use backstop_plan::start_events::Person;
use backstop_plan::view::ViewFolder;
use backstop_plan::workspace::{InPlace, PhaseExecutor, PhaseRunner, Worktrees};
use backstop_runtime::host::{Host, HostParts, Observer};
use begin::Begun;
use clap::ValueEnum;
use equip::Outfit;
use ground::Site;
use shared::Guards;
use std::sync::Arc;
use std::time::Instant;
use watch::{Show, Viewer};

/// Runs a plan.
pub(crate) fn run(args: &cli::Run, format: Option<LogFormat>) -> Result<u8, CliError> {
    let context = Context::new(&flags(args), format)?;
    let found = read::read(&args.plan, &context.project)?;
    let settings = context.config.plan();
    terminal::warn_inert(&context.config);
    for (what, hint) in context::strange_variables() {
        terminal::warn(&what, Some(&hint));
    }
    let outfit = Outfit::new(&context.config, &context.project)?;
    let equipment = outfit.equip(&found.plan)?;
    let views = ViewFolder::new(&context.project, &read::view_name(&found.path));
    let again = again(args, &found.path);
    if args.dry_run {
        let site = ground::look(args, &context, &settings, &found, None)?;
        let policy = context.config.policy("phase")?;
        return summary::dry_run(
            args,
            &found,
            &equipment,
            &settings,
            &policy,
            &site,
            outfit.notes(&found.plan),
            &again,
        );
    }
    freeze::refuse_if_frozen(&context)?;
    if args.quiet {
        terminal::be_quiet();
    }
    let missing = equip::missing_programs(&found.plan, &equipment, &is_on_the_path);
    if let Some((program, phase)) = missing.into_iter().next() {
        return Err(CliError::AgentMissing { program, phase });
    }
    let packs = context.config.packs();
    let classifier = classify::classifier_with(&packs, &context.redactor)?;
    let policy = Arc::new(context.config.policy("phase")?);
    let begun = begin::begin(args, &context, &settings, &found, &views, policy.usual_attempts())?;
    let Begun { journal, record, site, notes, hold, opened } = begun;
    let show = show(args, context.log_format);
    if let Show::Events(format) = show {
        watch::print_events(&opened, format);
    }
    if matches!(show, Show::Live | Show::Lines) {
        for warning in &found.plan.warnings {
            terminal::warn(&format!("{}:{}: {}", found.path, warning.line, warning.text), None);
        }
        for note in outfit.notes(&found.plan).iter().chain(&notes) {
            terminal::say(&format!("note: {}\n", SafeText::new(note.clone()).line(400)));
        }
    }

    let in_place = matches!(site, Site::InPlace(_));
    let jobs = if in_place { 1 } else { settings.jobs };
    let rules = Rules {
        jobs,
        parallel: if settings.parallel == "auto" { Parallel::Auto } else { Parallel::Declared },
        retry: if settings.retry == "immediate" { RetryWhen::Immediate } else { RetryWhen::AfterSiblings },
    };
    let scratch =
        context.folder()?.work_folder(&context.project, &begin::folder_name(journal.id(), "scratch"))?;
    let guards = Guards::new(&context, &equipment);
    let runner = PhaseRunner {
        plan: &found.plan,
        plan_path: SafeText::new(found.file.to_string_lossy()),
        equipment,
        gate_timeout: settings.gate_timeout,
        classifier: &classifier,
        redactor: Arc::clone(&context.redactor),
        views: views.clone(),
        scratch: scratch.clone(),
        journal: &journal,
        mark: context::mark(journal.id(), &context::host()),
        now: &context::now,
        one_at_a_time: jobs == 1,
    };
    let began = Instant::now();
    let mut viewer =
        Viewer::new(show, &found.plan, jobs, Arc::clone(&context.redactor), context.config.tail_to());
    let mut files = PlanFiles::new(&views, found.file.clone(), again.clone());
    let run_host = |executor: &PhaseExecutor<'_>, viewer: &mut Viewer<'_>| {
        let parts = HostParts {
            log: &journal,
            record,
            opened,
            rules,
            policy: Arc::clone(&policy),
            recovery_disabled: context::is_disabled(),
            executor,
            admission: &guards,
            observers: files.observers().into_iter().chain([viewer as &mut dyn Observer<_>]).collect(),
            halt_timeout: settings.halt_timeout,
            resume: again.clone(),
            clock: &move || began.elapsed(),
            annotate_fault: &|fault| host::witness(&context, journal.journal().deferred_count().ok(), fault),
            random: &|| (context::random() >> 11) as f64 / (1u64 << 53) as f64,
        };
        let requests = asks::listen()?;
        let ended = Host::new(parts).and_then(|host| host.run(requests)).map_err(CliError::Host);
        ended.inspect_err(|error| aftermath::broke_off(&context, &found.path, journal.id(), error))
    };
    let ending = match site {
        Site::Worktrees(ground) => {
            let site = Worktrees::new(&runner, *ground);
            let ending = run_host(&site, &mut viewer)?;
            if ending.end == End::Complete && ending.unconcluded.is_none() {
                site.remove_slots();
            }
            ending
        }
        Site::InPlace(place) => {
            let site = InPlace {
                runner: &runner,
                folder: place.folder,
                repo: place.repo,
                commit: place.commit,
                exclude: place.exclude,
                before: place.before,
            };
            run_host(&site, &mut viewer)?
        }
    };
    viewer.finish();
    let _ = std::fs::remove_dir_all(&scratch);
    drop(hold);
    let is_done = ending.end == End::Complete && ending.unconcluded.is_none();
    aftermath::recorded_run_ended(&context, &journal, is_done);
    summary::tell(args, &context, &views, &ending, &again, began.elapsed(), show)?;
    if matches!(show, Show::Live | Show::Lines) {
        deferred::offer(&context, &journal.journal().deferred().unwrap_or_default(), None);
    }
    Ok(match (&ending.end, &ending.unconcluded) {
        (End::Complete, None) => DONE,
        // Not by anybody's hand: what runs was let end, and nothing more was begun.
        (End::Stopped, _) if ending.frozen.is_some() => DEFERRED,
        (End::Stopped, _) => INTERRUPTED,
        _ => HALTED,
    })
}

fn show(args: &cli::Run, format: LogFormat) -> Show {
    match format {
        _ if args.json => Show::Events(LogFormat::Json),
        _ if args.quiet => Show::Quiet,
        LogFormat::Json | LogFormat::Emit => Show::Events(format),
        LogFormat::Human if terminal::is_watched() => Show::Live,
        LogFormat::Human => Show::Lines,
    }
}

fn flags(args: &cli::Run) -> Vec<Given> {
    fn word<T: ValueEnum>(value: Option<T>) -> Option<String> {
        value.and_then(|value| value.to_possible_value()).map(|value| value.get_name().to_owned())
    }
    let given = [
        ("--agent", "plan.agent", args.agent.clone()),
        ("--model", "plan.model", args.model.clone()),
        ("--commit", "plan.commit", word(args.commit)),
        ("--jobs", "plan.jobs", args.jobs.clone()),
        ("--parallel", "plan.parallel", word(args.parallel)),
        ("--retry", "plan.retry", word(args.retry)),
        ("--isolation", "plan.isolation", word(args.isolation)),
        ("--gates", "plan.gates", word(args.gates)),
        ("--timeout", "plan.timeout", args.timeout.clone()),
        ("--idle", "plan.idle", args.idle.clone()),
        ("--halt-timeout", "plan.halt_timeout", args.halt_timeout.clone()),
    ];
    let given = given.into_iter().filter_map(|(flag, key, value)| {
        Some(Given { flag: flag.to_owned(), key: key.to_owned(), value: value? })
    });
    given.collect()
}

/// The command that goes on with a run: what was typed, without what is for one time only.
fn again(args: &cli::Run, path: &str) -> String {
    let plan = args.plan.to_string_lossy();
    let plan = if plan.is_empty() { path.to_owned() } else { plan.into_owned() };
    let mut words = vec!["backstop".to_owned(), "run".to_owned(), plan];
    for Given { flag, value, .. } in flags(args) {
        words.push(flag);
        words.push(value);
    }
    if args.allow_dirty {
        words.push("--allow-dirty".to_owned());
    }
    shell::line(&words)
}

/// Who overrides something, and why.
fn person(why: Option<&String>) -> Person {
    let (caller, _) = context::caller_and_session();
    Person {
        by: SafeText::new(caller.unwrap_or_else(|| "command line".to_owned())),
        why: SafeText::new(why.cloned().unwrap_or_else(|| "none given".to_owned())),
    }
}

/// Whether a program is found.
pub(crate) fn is_on_the_path(program: &str) -> bool {
    use std::os::unix::fs::PermissionsExt;
    let runs = |path: &std::path::Path| {
        path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    if program.contains('/') {
        return runs(std::path::Path::new(program));
    }
    std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|folder| runs(&folder.join(program))))
}
