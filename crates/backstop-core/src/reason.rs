//! The taxonomy: every reason with its class, severity, retry, remedy, causes and next steps.
//!
//! One table, here. `backstop reasons` prints it, `docs/reasons/` has a page for each row, and
//! every surface takes its words from it. It must not hold policy: how often and how long apart is
//! a profile's business.

use crate::class::{Class, Retry, Severity};
use serde::{Deserialize, Serialize};

/// What a failure is: one code of the taxonomy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// Record the limit, wait for the guard, then retry.
    RateLimited,
    /// A billing or plan limit: no short wait cures it.
    QuotaExhausted,
    /// The provider refused the content; never repeat it unchanged.
    ContentPolicy,
    /// Retry with jittered backoff; when that is used up it is network_permanent.
    NetworkTransient,
    /// Wrong endpoint, unknown name, bad certificate or removed resource.
    NetworkPermanent,
    /// A service of ours is down: alert, and defer until it answers.
    ServiceDown,
    /// The clock ended it: narrow the scope or raise the limit.
    Timeout,
    /// Somebody else holds it: pause briefly, then retry.
    ResourceContention,
    /// A failed test passed unchanged: report it as flaky.
    FlakyTest,
    /// Drop the oldest turns or attachments, about half, and retry once.
    ContextOverflow,
    /// A credential is missing, wrong or expired: renew it.
    AuthError,
    /// The path or scope is not allowed for this user.
    PermissionDenied,
    /// The request is wrong as it stands: correct it.
    Validation,
    /// Parameters are missing or of the wrong type.
    InvalidParameters,
    /// The command, its arguments or its configuration are wrong.
    InvalidUsage,
    /// No such tool: discover again, then choose among the nearest names.
    ToolNotFound,
    /// The tool ran and reported an error.
    ToolFailed,
    /// The cache is missing or unreadable: rebuild it, go on with live discovery.
    CacheInvalid,
    /// Some items succeeded: repeat the failed ones only.
    PartialSuccess,
    /// Fix the failing tests.
    TestFailure,
    /// Fix what the linter reports; much of it can be fixed automatically.
    LintError,
    /// Fix the type errors.
    TypecheckError,
    /// Run the formatter.
    FormatError,
    /// Fix the code so that it compiles.
    CompileError,
    /// Some of the tasks were not done.
    TaskIncomplete,
    /// What was claimed is not what was found.
    VerificationMismatch,
    /// The result could not be read.
    ParseError,
    /// Install what is missing.
    DependencyMissing,
    /// The plan depends on itself: remove the cycle.
    CircularDependency,
    /// Two changes meet in one place.
    FileConflict,
    /// What git said, and the command that puts it right.
    VcsError,
    /// The plan cannot be read: line and column are named.
    PlanInvalid,
    /// A state file or row is malformed: the ways out are named.
    StateInvalid,
    /// Nothing remains of the budget: hand over what is known.
    BudgetExhausted,
    /// Too few answers: partial results are returned.
    QuorumFailure,
    /// Results could not be put together: once more, then ERROR.
    AggregationFailed,
    /// Questions remain open.
    ClarifyExhausted,
    /// The planner's answer is not a decision: ask for clarification, and count it.
    DecisionUnknown,
    /// The task's verification fails: block the task.
    VerifyFailed,
    /// The code breaks the framework's idioms: block the task.
    IdiomViolation,
    /// Tasks are unreachable: plan again, else propagate the blocks.
    CascadeStuck,
    /// Too many iterations: force the cascade.
    IterationExhausted,
    /// Nothing changes any more: force the cascade.
    StuckDetected,
    /// Memory ran out: alert, defer until there is some.
    OutOfMemory,
    /// The disk is full: alert, defer until there is space.
    DiskFull,
    /// A limit of the system is reached: alert, defer.
    ResourceExhausted,
    /// The program ended abnormally: read where.
    Crash,
    /// Stop, and tell a person.
    SecurityBreach,
    /// Stop, and tell a person.
    DataLoss,
    /// It was stopped from outside: resume when ready.
    Interrupted,
    /// Not recognised: read the raw error; a rule can be added for it.
    Unknown,
}

/// One row of the taxonomy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReasonInfo {
    /// The reason itself.
    pub reason: Reason,
    /// Its code, as it is written in outputs.
    pub code: &'static str,
    /// Who or what has to change for it to go away.
    pub class: Class,
    /// How bad it is when it ends the work.
    pub severity: Severity,
    /// Whether and how the same operation may be tried again.
    pub retry: Retry,
    /// The remedy in one line.
    pub remedy: &'static str,
    /// Possible causes, most likely first.
    pub causes: &'static [&'static str],
    /// Next steps, in order.
    pub next_steps: &'static [&'static str],
}

/// The whole taxonomy, in the order in which it is shown.
pub const TAXONOMY: &[ReasonInfo] = &[
    ReasonInfo {
        reason: Reason::RateLimited,
        code: "rate_limited",
        class: Class::Transient,
        severity: Severity::Medium,
        retry: Retry::Later,
        remedy: "record the limit, wait for the guard, then retry",
        causes: &["Too many requests or tokens in the provider's window", "Several agents share one key"],
        next_steps: &["Wait until the reset time", "Lower concurrency, or spread the work over time"],
    },
    ReasonInfo {
        reason: Reason::QuotaExhausted,
        code: "quota_exhausted",
        class: Class::Permanent,
        severity: Severity::High,
        retry: Retry::No,
        remedy: "a billing or plan limit: no short wait cures it",
        causes: &[
            "Prepaid credit is used up",
            "The plan's daily, weekly or monthly limit is reached",
            "The account has no access to this model's quota",
        ],
        next_steps: &[
            "Check usage and billing at the provider",
            "Wait for the stated reset, or raise the limit",
            "Use another key or provider",
        ],
    },
    ReasonInfo {
        reason: Reason::ContentPolicy,
        code: "content_policy",
        class: Class::Permanent,
        severity: Severity::Medium,
        retry: Retry::No,
        remedy: "the provider refused the content; never repeat it unchanged",
        causes: &["The prompt or the answer tripped a safety filter"],
        next_steps: &["Read which part was refused", "Change the content, then send it again"],
    },
    ReasonInfo {
        reason: Reason::NetworkTransient,
        code: "network_transient",
        class: Class::Transient,
        severity: Severity::Medium,
        retry: Retry::Plain,
        remedy: "retry with jittered backoff; when that is used up it is network_permanent",
        causes: &[
            "The connection was reset, refused or timed out",
            "The server is overloaded or restarting",
            "DNS had a passing fault",
        ],
        next_steps: &["Wait a moment and try again", "If it goes on, check the service's status"],
    },
    ReasonInfo {
        reason: Reason::NetworkPermanent,
        code: "network_permanent",
        class: Class::Permanent,
        severity: Severity::High,
        retry: Retry::No,
        remedy: "wrong endpoint, unknown name, bad certificate or removed resource",
        causes: &[
            "The host name does not exist",
            "The certificate is not trusted or has expired",
            "The resource was moved or deleted",
            "Proxy or firewall refuses the connection",
        ],
        next_steps: &[
            "Check the address for typing mistakes",
            "Check DNS, proxy and certificate settings",
            "Confirm that the resource still exists",
        ],
    },
    ReasonInfo {
        reason: Reason::ServiceDown,
        code: "service_down",
        class: Class::System,
        severity: Severity::High,
        retry: Retry::Later,
        remedy: "a service of ours is down: alert, and defer until it answers",
        causes: &["A database, queue or daemon is not running", "It listens on another port or socket"],
        next_steps: &[
            "Start the service",
            "Check its address in the configuration",
            "Then run the work again",
        ],
    },
    ReasonInfo {
        reason: Reason::Timeout,
        code: "timeout",
        class: Class::Transient,
        severity: Severity::Medium,
        retry: Retry::Plain,
        remedy: "the clock ended it: narrow the scope or raise the limit",
        causes: &[
            "The work is slower than its limit",
            "It waits for input or for something that never comes",
            "A deadlock or an endless loop",
        ],
        next_steps: &[
            "Look at the last activity before the limit",
            "Narrow the scope, or raise the limit",
            "Check for prompts that wait for input",
        ],
    },
    ReasonInfo {
        reason: Reason::ResourceContention,
        code: "resource_contention",
        class: Class::Transient,
        severity: Severity::Medium,
        retry: Retry::Plain,
        remedy: "somebody else holds it: pause briefly, then retry",
        causes: &[
            "Another process holds the lock, the port or the file",
            "A crashed process left its lock behind",
        ],
        next_steps: &["Wait for the other process to finish", "If none is running, remove the stale lock"],
    },
    ReasonInfo {
        reason: Reason::FlakyTest,
        code: "flaky_test",
        class: Class::Transient,
        severity: Severity::Medium,
        retry: Retry::Plain,
        remedy: "a failed test passed unchanged: report it as flaky",
        causes: &[
            "Order, timing or shared state decides the outcome",
            "The test depends on the network or the clock",
        ],
        next_steps: &["Run it again alone", "Remove its dependence on time, order or network"],
    },
    ReasonInfo {
        reason: Reason::ContextOverflow,
        code: "context_overflow",
        class: Class::Transient,
        severity: Severity::Medium,
        retry: Retry::Changed,
        remedy: "drop the oldest turns or attachments, about half, and retry once",
        causes: &[
            "The conversation is longer than the model's window",
            "A tool returned too much text",
            "max_tokens leaves no room for the prompt",
        ],
        next_steps: &[
            "Shorten the conversation or the attachments",
            "Lower max_tokens",
            "Use a model with a larger window",
        ],
    },
    ReasonInfo {
        reason: Reason::AuthError,
        code: "auth_error",
        class: Class::Permanent,
        severity: Severity::High,
        retry: Retry::No,
        remedy: "a credential is missing, wrong or expired: renew it",
        causes: &[
            "The key or token is wrong, expired or revoked",
            "The variable is not set in this environment",
            "The account may not do this",
        ],
        next_steps: &[
            "Check which credential was used",
            "Renew it, or log in again",
            "Check that the account has access",
        ],
    },
    ReasonInfo {
        reason: Reason::PermissionDenied,
        code: "permission_denied",
        class: Class::Permanent,
        severity: Severity::High,
        retry: Retry::No,
        remedy: "the path or scope is not allowed for this user",
        causes: &[
            "The file belongs to another user",
            "The file is not executable",
            "A sandbox or policy forbids it",
        ],
        next_steps: &[
            "Check owner and mode of the path",
            "Run with the rights that it needs",
            "Choose a path that you may write",
        ],
    },
    ReasonInfo {
        reason: Reason::Validation,
        code: "validation",
        class: Class::Permanent,
        severity: Severity::Low,
        retry: Retry::No,
        remedy: "the request is wrong as it stands: correct it",
        causes: &[
            "A field is missing, unknown or of the wrong type",
            "The model or route does not exist",
            "The request is not allowed in this state",
        ],
        next_steps: &["Read what the server says is wrong", "Correct the request, then send it again"],
    },
    ReasonInfo {
        reason: Reason::InvalidParameters,
        code: "invalid_parameters",
        class: Class::User,
        severity: Severity::Low,
        retry: Retry::No,
        remedy: "parameters are missing or of the wrong type",
        causes: &["A required parameter was left out", "A value has the wrong type"],
        next_steps: &["Give the parameters that are named", "Compare with the expected names and types"],
    },
    ReasonInfo {
        reason: Reason::InvalidUsage,
        code: "invalid_usage",
        class: Class::User,
        severity: Severity::Low,
        retry: Retry::No,
        remedy: "the command, its arguments or its configuration are wrong",
        causes: &[
            "A flag or subcommand is misspelt",
            "An input file does not exist",
            "The configuration file is malformed",
        ],
        next_steps: &[
            "Check the command line against its help",
            "Check the path and the configuration that are named",
        ],
    },
    ReasonInfo {
        reason: Reason::ToolNotFound,
        code: "tool_not_found",
        class: Class::Permanent,
        severity: Severity::Medium,
        retry: Retry::No,
        remedy: "no such tool: discover again, then choose among the nearest names",
        causes: &["The tool's name or prefix has changed", "The server is not registered or not connected"],
        next_steps: &["Refresh the list of tools", "Use one of the nearest names"],
    },
    ReasonInfo {
        reason: Reason::ToolFailed,
        code: "tool_failed",
        class: Class::Permanent,
        severity: Severity::Medium,
        retry: Retry::Plain,
        remedy: "the tool ran and reported an error",
        causes: &["The target of the call does not exist or has changed", "The tool met an error of its own"],
        next_steps: &["Read the tool's message", "Refresh what the call refers to, then try again"],
    },
    ReasonInfo {
        reason: Reason::CacheInvalid,
        code: "cache_invalid",
        class: Class::System,
        severity: Severity::Low,
        retry: Retry::Changed,
        remedy: "the cache is missing or unreadable: rebuild it, go on with live discovery",
        causes: &["The cache file was deleted, cut short or written by another version"],
        next_steps: &["Rebuild the cache", "Go on without it"],
    },
    ReasonInfo {
        reason: Reason::PartialSuccess,
        code: "partial_success",
        class: Class::Transient,
        severity: Severity::Medium,
        retry: Retry::Changed,
        remedy: "some items succeeded: repeat the failed ones only",
        causes: &["Some items of a batch were refused", "The tool ended with warnings"],
        next_steps: &["Look at the list of failed items", "Repeat those alone"],
    },
    ReasonInfo {
        reason: Reason::TestFailure,
        code: "test_failure",
        class: Class::Permanent,
        severity: Severity::Medium,
        retry: Retry::Changed,
        remedy: "fix the failing tests",
        causes: &[
            "The code does not do what the test expects",
            "The test's expectation is out of date",
            "A fixture or a service that the test needs is missing",
        ],
        next_steps: &[
            "Read the first failing assertion",
            "Fix the code or the expectation",
            "Run the failing tests alone",
        ],
    },
    ReasonInfo {
        reason: Reason::LintError,
        code: "lint_error",
        class: Class::Permanent,
        severity: Severity::Medium,
        retry: Retry::Changed,
        remedy: "fix what the linter reports; much of it can be fixed automatically",
        causes: &["The code breaks a rule of the linter's configuration"],
        next_steps: &["Run the linter's fix command", "Correct the rest by hand"],
    },
    ReasonInfo {
        reason: Reason::TypecheckError,
        code: "typecheck_error",
        class: Class::Permanent,
        severity: Severity::Medium,
        retry: Retry::Changed,
        remedy: "fix the type errors",
        causes: &[
            "A value's type does not fit its use",
            "A signature has changed",
            "Type definitions are missing",
        ],
        next_steps: &["Read the first error: expected and actual type", "Correct the signature or the use"],
    },
    ReasonInfo {
        reason: Reason::FormatError,
        code: "format_error",
        class: Class::Permanent,
        severity: Severity::Medium,
        retry: Retry::Changed,
        remedy: "run the formatter",
        causes: &["Files are not formatted as the formatter would"],
        next_steps: &["Run the formatter in write mode", "Commit the result"],
    },
    ReasonInfo {
        reason: Reason::CompileError,
        code: "compile_error",
        class: Class::Permanent,
        severity: Severity::Medium,
        retry: Retry::Changed,
        remedy: "fix the code so that it compiles",
        causes: &[
            "A syntax error",
            "A name that does not exist",
            "A type that does not fit",
            "A symbol that the linker cannot find",
        ],
        next_steps: &["Read the first error, not the last", "Correct the file and line it names"],
    },
    ReasonInfo {
        reason: Reason::TaskIncomplete,
        code: "task_incomplete",
        class: Class::Permanent,
        severity: Severity::Medium,
        retry: Retry::Changed,
        remedy: "some of the tasks were not done",
        causes: &["The agent stopped early", "A task was skipped"],
        next_steps: &["See which tasks remain", "Run again with those alone"],
    },
    ReasonInfo {
        reason: Reason::VerificationMismatch,
        code: "verification_mismatch",
        class: Class::Permanent,
        severity: Severity::Medium,
        retry: Retry::Changed,
        remedy: "what was claimed is not what was found",
        causes: &["Success was claimed without running the checks", "Something changed after the checks ran"],
        next_steps: &["Compare the claim with the finding", "Run all checks after the last change"],
    },
    ReasonInfo {
        reason: Reason::ParseError,
        code: "parse_error",
        class: Class::Permanent,
        severity: Severity::Medium,
        retry: Retry::Changed,
        remedy: "the result could not be read",
        causes: &["The answer is not in the agreed form", "The output was cut short"],
        next_steps: &["Ask for the agreed form again", "Look at the raw output"],
    },
    ReasonInfo {
        reason: Reason::DependencyMissing,
        code: "dependency_missing",
        class: Class::System,
        severity: Severity::High,
        retry: Retry::No,
        remedy: "install what is missing",
        causes: &[
            "A package, module, header or library is not installed",
            "A tool is not on the PATH",
            "The wrong environment is active",
        ],
        next_steps: &[
            "Install what is named",
            "Check that the right environment is active",
            "Then run it again",
        ],
    },
    ReasonInfo {
        reason: Reason::CircularDependency,
        code: "circular_dependency",
        class: Class::User,
        severity: Severity::High,
        retry: Retry::No,
        remedy: "the plan depends on itself: remove the cycle",
        causes: &["Two or more phases wait for each other"],
        next_steps: &["Follow the cycle that is spelled out", "Remove one of its dependencies"],
    },
    ReasonInfo {
        reason: Reason::FileConflict,
        code: "file_conflict",
        class: Class::Permanent,
        severity: Severity::High,
        retry: Retry::No,
        remedy: "two changes meet in one place",
        causes: &[
            "Two changes touch the same lines",
            "Local changes would be overwritten",
            "The target exists already",
        ],
        next_steps: &["Merge the changes by hand", "Make the work sequential", "Split the shared file"],
    },
    ReasonInfo {
        reason: Reason::VcsError,
        code: "vcs_error",
        class: Class::Permanent,
        severity: Severity::Medium,
        retry: Retry::No,
        remedy: "what git said, and the command that puts it right",
        causes: &["No such branch or path", "No repository here", "A remote has moved on"],
        next_steps: &["Read git's own hint", "Run git status, then put right what it names"],
    },
    ReasonInfo {
        reason: Reason::PlanInvalid,
        code: "plan_invalid",
        class: Class::User,
        severity: Severity::High,
        retry: Retry::No,
        remedy: "the plan cannot be read: line and column are named",
        causes: &["A column, a row or an id is malformed", "A dependency names no phase"],
        next_steps: &["Correct the plan at the place named", "Check it with a dry run"],
    },
    ReasonInfo {
        reason: Reason::StateInvalid,
        code: "state_invalid",
        class: Class::System,
        severity: Severity::High,
        retry: Retry::No,
        remedy: "a state file or row is malformed: the ways out are named",
        causes: &["It was edited by hand", "It was cut short", "It was written by another version"],
        next_steps: &["Correct the field that is named", "Set the file aside and start fresh"],
    },
    ReasonInfo {
        reason: Reason::BudgetExhausted,
        code: "budget_exhausted",
        class: Class::Permanent,
        severity: Severity::High,
        retry: Retry::No,
        remedy: "nothing remains of the budget: hand over what is known",
        causes: &["The work goes round in a loop", "The budget is too small for the work"],
        next_steps: &["Look at what was tried", "Raise the budget if the work deserves it"],
    },
    ReasonInfo {
        reason: Reason::QuorumFailure,
        code: "quorum_failure",
        class: Class::Permanent,
        severity: Severity::High,
        retry: Retry::No,
        remedy: "too few answers: partial results are returned",
        causes: &["Too many explorers failed or timed out"],
        next_steps: &["Look at the partial results", "Run the missing explorers again"],
    },
    ReasonInfo {
        reason: Reason::AggregationFailed,
        code: "aggregation_failed",
        class: Class::Transient,
        severity: Severity::Medium,
        retry: Retry::Plain,
        remedy: "results could not be put together: once more, then ERROR",
        causes: &["A result is malformed or missing"],
        next_steps: &["Try once more", "Look at the result that is named"],
    },
    ReasonInfo {
        reason: Reason::ClarifyExhausted,
        code: "clarify_exhausted",
        class: Class::User,
        severity: Severity::Medium,
        retry: Retry::No,
        remedy: "questions remain open",
        causes: &["The objective leaves too much open"],
        next_steps: &["Answer the open questions", "Run again with the answers"],
    },
    ReasonInfo {
        reason: Reason::DecisionUnknown,
        code: "decision_unknown",
        class: Class::Permanent,
        severity: Severity::Medium,
        retry: Retry::Changed,
        remedy: "the planner's answer is not a decision: ask for clarification, and count it",
        causes: &["The answer has no recognisable decision"],
        next_steps: &["Ask again, naming the decisions that are possible"],
    },
    ReasonInfo {
        reason: Reason::VerifyFailed,
        code: "verify_failed",
        class: Class::Permanent,
        severity: Severity::High,
        retry: Retry::No,
        remedy: "the task's verification fails: block the task",
        causes: &["The work does not do what its verification asks"],
        next_steps: &["Look at the verification's output", "Change the task or the approach"],
    },
    ReasonInfo {
        reason: Reason::IdiomViolation,
        code: "idiom_violation",
        class: Class::Permanent,
        severity: Severity::High,
        retry: Retry::No,
        remedy: "the code breaks the framework's idioms: block the task",
        causes: &["A forbidden idiom was used", "A required one is missing"],
        next_steps: &["See which idiom is named", "Rework the task within it"],
    },
    ReasonInfo {
        reason: Reason::CascadeStuck,
        code: "cascade_stuck",
        class: Class::Permanent,
        severity: Severity::High,
        retry: Retry::Changed,
        remedy: "tasks are unreachable: plan again, else propagate the blocks",
        causes: &["A blocked task holds up the others"],
        next_steps: &["Look at the analysis", "Plan again around the blocked task"],
    },
    ReasonInfo {
        reason: Reason::IterationExhausted,
        code: "iteration_exhausted",
        class: Class::Permanent,
        severity: Severity::High,
        retry: Retry::No,
        remedy: "too many iterations: force the cascade",
        causes: &["The campaign makes no headway"],
        next_steps: &["Look at what the last iterations did", "Split the objective"],
    },
    ReasonInfo {
        reason: Reason::StuckDetected,
        code: "stuck_detected",
        class: Class::Permanent,
        severity: Severity::High,
        retry: Retry::No,
        remedy: "the same failure again, and nothing has changed in between: change something first",
        causes: &[
            "A command fails the same way each time, and no file of the project was changed",
            "In a campaign, the same tasks stay ready, and none finishes",
        ],
        next_steps: &[
            "Read what the last failure says, and change what it names",
            "In a campaign, change or remove the tasks that do not finish",
        ],
    },
    ReasonInfo {
        reason: Reason::OutOfMemory,
        code: "out_of_memory",
        class: Class::System,
        severity: Severity::High,
        retry: Retry::Later,
        remedy: "memory ran out: alert, defer until there is some",
        causes: &["The work needs more memory than there is", "Too much runs at once", "A leak"],
        next_steps: &["Close what else uses memory", "Lower parallelism, or raise the limit"],
    },
    ReasonInfo {
        reason: Reason::DiskFull,
        code: "disk_full",
        class: Class::System,
        severity: Severity::High,
        retry: Retry::Later,
        remedy: "the disk is full: alert, defer until there is space",
        causes: &["The disk or quota is full", "Inodes are used up", "Old builds and logs pile up"],
        next_steps: &["Free some space on the file system that is named", "Then run it again"],
    },
    ReasonInfo {
        reason: Reason::ResourceExhausted,
        code: "resource_exhausted",
        class: Class::System,
        severity: Severity::High,
        retry: Retry::Later,
        remedy: "a limit of the system is reached: alert, defer",
        causes: &[
            "Too many open files or processes",
            "The process was killed, often for lack of memory",
            "A limit of the shell or container",
        ],
        next_steps: &["Look at the limits with ulimit -a", "Lower parallelism, or raise the limit"],
    },
    ReasonInfo {
        reason: Reason::Crash,
        code: "crash",
        class: Class::Permanent,
        severity: Severity::High,
        retry: Retry::No,
        remedy: "the program ended abnormally: read where",
        causes: &[
            "An uncaught exception or a panic",
            "A signal such as SIGSEGV or SIGABRT",
            "A defect in the program or in what it was given",
        ],
        next_steps: &["Read the innermost frame of your own code", "Reproduce it with the same input"],
    },
    ReasonInfo {
        reason: Reason::SecurityBreach,
        code: "security_breach",
        class: Class::System,
        severity: Severity::Critical,
        retry: Retry::No,
        remedy: "stop, and tell a person",
        causes: &["Reported by a person or a scanner, never guessed"],
        next_steps: &["Stop all work", "Tell the person who answers for security"],
    },
    ReasonInfo {
        reason: Reason::DataLoss,
        code: "data_loss",
        class: Class::System,
        severity: Severity::Critical,
        retry: Retry::No,
        remedy: "stop, and tell a person",
        causes: &["Reported by a person or a check, never guessed"],
        next_steps: &[
            "Stop all work",
            "Keep what is left untouched",
            "Tell the person who answers for the data",
        ],
    },
    ReasonInfo {
        reason: Reason::Interrupted,
        code: "interrupted",
        class: Class::User,
        severity: Severity::Low,
        retry: Retry::No,
        remedy: "it was stopped from outside: resume when ready",
        causes: &["Ctrl-C or SIGTERM", "The terminal or the machine went away"],
        next_steps: &["Resume, or run it again"],
    },
    ReasonInfo {
        reason: Reason::Unknown,
        code: "unknown",
        class: Class::Permanent,
        severity: Severity::Medium,
        retry: Retry::No,
        remedy: "not recognised: read the raw error; a rule can be added for it",
        causes: &["No rule knows this output", "The command says nothing about why it failed"],
        next_steps: &["Read the last lines of the output", "Add a rule for it if it comes back"],
    },
];
impl Reason {
    /// The row of the taxonomy for this reason.
    pub fn info(self) -> &'static ReasonInfo {
        // The table is in the order of the enum; a test holds that.
        &TAXONOMY[self as usize]
    }

    /// The code as it is written in outputs, such as `rate_limited`.
    pub fn code(self) -> &'static str {
        self.info().code
    }

    /// Its class.
    pub fn class(self) -> Class {
        self.info().class
    }

    /// Its severity, before anything raised it.
    pub fn severity(self) -> Severity {
        self.info().severity
    }

    /// Its way of being tried again.
    pub fn retry(self) -> Retry {
        self.info().retry
    }

    /// Whether the same again has a fair chance: `plain`, `later` where waiting alone cures it, or
    /// a cure that Backstop applies by itself.
    pub fn retryable(self) -> bool {
        self.retry() == Retry::Plain
            || matches!(self, Reason::RateLimited | Reason::ServiceDown | Reason::ContextOverflow)
    }

    /// What it is called when retries did not help, where that is another reason.
    pub fn when_exhausted(self) -> Option<Reason> {
        (self == Reason::NetworkTransient).then_some(Reason::NetworkPermanent)
    }

    /// The condition that must be gone before it makes sense to go on, as part of a sentence.
    pub fn waits_for(self) -> &'static str {
        match self {
            Reason::RateLimited => "the rate limit has reset",
            Reason::QuotaExhausted => "the quota has reset or was raised",
            Reason::ServiceDown => "the service answers",
            Reason::OutOfMemory => "there is memory",
            Reason::DiskFull => "there is space on the disk",
            Reason::ResourceExhausted => "the system is below its limit",
            Reason::NetworkTransient | Reason::NetworkPermanent => "the network answers",
            _ => "its cause is gone",
        }
    }

    /// The first thing to do about it, as part of a sentence.
    pub fn first_step(self) -> String {
        let step = self.info().next_steps.first().copied().unwrap_or(self.info().remedy);
        let mut chars = step.chars();
        chars.next().map_or_else(String::new, |first| first.to_lowercase().chain(chars).collect())
    }

    /// The reason with this code, if there is one.
    pub fn from_code(code: &str) -> Option<Reason> {
        TAXONOMY.iter().find(|row| row.code == code).map(|row| row.reason)
    }

    /// All reasons, in the order of the taxonomy.
    pub fn all() -> impl Iterator<Item = Reason> {
        TAXONOMY.iter().map(|row| row.reason)
    }
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.code())
    }
}

/// A code that names no reason, with the nearest one that does.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown reason `{given}`{}", nearest.map(|n| format!("; did you mean `{n}`?")).unwrap_or_default())]
pub struct UnknownReason {
    /// What was given.
    pub given: String,
    /// The nearest known code, if one is near.
    pub nearest: Option<&'static str>,
}

impl std::str::FromStr for Reason {
    type Err = UnknownReason;

    fn from_str(given: &str) -> Result<Self, Self::Err> {
        Reason::from_code(given).ok_or_else(|| UnknownReason {
            given: given.chars().take(64).collect(),
            nearest: crate::nearest::nearest(given, TAXONOMY.iter().map(|row| row.code)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_the_enum() {
        for (index, row) in TAXONOMY.iter().enumerate() {
            assert_eq!(row.reason as usize, index, "{}", row.code);
            assert_eq!(serde_json::to_value(row.reason).unwrap(), row.code);
        }
    }

    #[test]
    fn every_row_says_something() {
        for row in TAXONOMY {
            assert!(
                !row.remedy.is_empty() && !row.causes.is_empty() && !row.next_steps.is_empty(),
                "{}",
                row.code
            );
        }
    }

    #[test]
    fn retryable_is_what_the_design_says() {
        let retryable: Vec<_> = Reason::all().filter(|r| r.retryable()).map(Reason::code).collect();
        assert_eq!(
            retryable,
            [
                "rate_limited",
                "network_transient",
                "service_down",
                "timeout",
                "resource_contention",
                "flaky_test",
                "context_overflow",
                "tool_failed",
                "aggregation_failed"
            ]
        );
    }

    #[test]
    fn a_misspelt_reason_names_the_nearest() {
        let error = "rate_limted".parse::<Reason>().unwrap_err();
        assert_eq!(error.to_string(), "unknown reason `rate_limted`; did you mean `rate_limited`?");
    }
}
