//! The names that older systems use for failures, and the reason each of them stands for.
//!
//! A name applies where its surface reports it: the surface keeps the seed's own field, and the
//! reason stands beside it.

use crate::{Reason, TAXONOMY};

/// Where a name comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Seed {
    /// The autobuild failure handling.
    Autobuild,
    /// The FTL error taxonomy.
    Ftl,
    /// The GDD error recovery.
    Gdd,
    /// The on-error hook.
    Hook,
    /// The skill manager's error handling.
    Skill,
}

/// A name that a seed uses, and what it stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeedName {
    /// Where it comes from.
    pub seed: Seed,
    /// The name, as the seed writes it.
    pub name: &'static str,
    /// What it stands for.
    pub reason: Reason,
}

macro_rules! seed_names {
    ($($seed:ident { $($name:literal => $reason:ident),* $(,)? })*) => {
        /// Every name that the seeds use for a failure.
        pub const SEED_NAMES: &[SeedName] = &[
            $($(SeedName { seed: Seed::$seed, name: $name, reason: Reason::$reason }),*),*
        ];
    };
}

seed_names! {
    Autobuild {
        "test_failure" => TestFailure,
        "lint_error" => LintError,
        "typecheck_error" => TypecheckError,
        "format_error" => FormatError,
        "task_incomplete" => TaskIncomplete,
        "verification_mismatch" => VerificationMismatch,
        "timeout" => Timeout,
        "parse_error" => ParseError,
        "dependency_missing" => DependencyMissing,
        "circular_dependency" => CircularDependency,
        "file_conflict" => FileConflict,
        "plan_invalid" => PlanInvalid,
    }
    Ftl {
        "Network timeout" => NetworkTransient,
        "Rate limiting" => RateLimited,
        "API throttle" => RateLimited,
        "Resource contention" => ResourceContention,
        "File lock held" => ResourceContention,
        "Flaky test" => FlakyTest,
        "Schema mismatch" => PlanInvalid,
        "Missing dependency" => DependencyMissing,
        "Invalid state" => StateInvalid,
        "Cycle detected" => CircularDependency,
        "Budget exhausted" => BudgetExhausted,
        "timeout" => Timeout,
        "quorum_failure" => QuorumFailure,
        "aggregation_failed" => AggregationFailed,
        "clarify_exhausted" => ClarifyExhausted,
        "decision_unknown" => DecisionUnknown,
        "schema_invalid" => PlanInvalid,
        "cycle_detected" => CircularDependency,
        "budget_exhausted" => BudgetExhausted,
        "verify_failed" => VerifyFailed,
        "idiom_violation" => IdiomViolation,
        "workspace_invalid" => StateInvalid,
        "cascade_stuck" => CascadeStuck,
        "iteration_exhausted" => IterationExhausted,
        "stuck_detected" => StuckDetected,
    }
    Gdd {
        "rate_limited" => RateLimited,
        "context_overflow" => ContextOverflow,
        "auth_error" => AuthError,
        "network_transient" => NetworkTransient,
        "network_permanent" => NetworkPermanent,
        "tool_not_found" => ToolNotFound,
        "validation" => Validation,
        "unknown" => Unknown,
        "413" => ContextOverflow,
        "429" => RateLimited,
        "5xx" => NetworkTransient,
        "ECONNRESET" => NetworkTransient,
        "304" => Validation,
        "IterationBudgetExhaustedError" => BudgetExhausted,
        "IterationBudgetExhausted" => BudgetExhausted,
    }
    Hook {
        "ConnectionError" => NetworkTransient,
        "TimeoutError" => Timeout,
        "TemporaryFailure" => NetworkTransient,
        "RateLimitExceeded" => RateLimited,
        "ServiceUnavailable" => NetworkTransient,
        "AuthenticationError" => AuthError,
        "PermissionDenied" => PermissionDenied,
        "ResourceNotFound" => NetworkPermanent,
        "InvalidInput" => Validation,
        "ValidationError" => Validation,
        "InvalidCommand" => InvalidUsage,
        "MissingRequiredInput" => InvalidParameters,
        "SyntaxError" => InvalidUsage,
        "OutOfMemory" => OutOfMemory,
        "DiskFull" => DiskFull,
        "DatabaseConnectionFailed" => ServiceDown,
        "Data loss risk" => DataLoss,
        "Security breach" => SecurityBreach,
        "System crash" => Crash,
    }
    Skill {
        "Tool not found" => ToolNotFound,
        "Execution failure" => ToolFailed,
        "Timeout" => Timeout,
        "Cache missing or invalid" => CacheInvalid,
        "Partial success" => PartialSuccess,
        "Invalid parameters" => InvalidParameters,
        "Permission denied" => PermissionDenied,
    }
}

/// The reason that a name of a seed stands for; a reason's own code is a name too. Case does not
/// matter.
pub fn from_seed_name(name: &str) -> Option<Reason> {
    let name = name.trim();
    let spelled =
        |code: &str| code.bytes().filter(|b| *b != b'_').eq(name.bytes().map(|b| b.to_ascii_lowercase()));
    Reason::from_code(name)
        .or_else(|| {
            SEED_NAMES.iter().find(|known| known.name.eq_ignore_ascii_case(name)).map(|known| known.reason)
        })
        .or_else(|| TAXONOMY.iter().find(|row| spelled(row.code)).and_then(|row| Reason::from_code(row.code)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Class;

    #[test]
    fn a_reason_may_be_spelled_as_a_type() {
        assert_eq!(from_seed_name("SecurityBreach"), Some(Reason::SecurityBreach));
        assert_eq!(from_seed_name("DataLoss"), Some(Reason::DataLoss));
        assert_eq!(from_seed_name("KeyError"), None);
    }

    #[test]
    fn every_name_of_every_seed_resolves() {
        for known in SEED_NAMES {
            let got = from_seed_name(known.name);
            assert_eq!(got, Some(known.reason), "{} of {:?}", known.name, known.seed);
        }
    }

    #[test]
    fn one_name_means_one_thing_whichever_seed_says_it() {
        for a in SEED_NAMES {
            for b in SEED_NAMES {
                if a.name.eq_ignore_ascii_case(b.name) {
                    assert_eq!(a.reason, b.reason, "{} of {:?} and {:?}", a.name, a.seed, b.seed);
                }
            }
        }
    }

    #[test]
    fn the_hook_s_four_lists_come_out_as_the_seed_says() {
        let lists: [(Class, &[&str]); 4] = [
            (
                Class::Transient,
                &[
                    "ConnectionError",
                    "TimeoutError",
                    "TemporaryFailure",
                    "RateLimitExceeded",
                    "ServiceUnavailable",
                ],
            ),
            (
                Class::Permanent,
                &[
                    "AuthenticationError",
                    "PermissionDenied",
                    "ResourceNotFound",
                    "InvalidInput",
                    "ValidationError",
                ],
            ),
            (Class::User, &["InvalidCommand", "MissingRequiredInput", "SyntaxError"]),
            (Class::System, &["OutOfMemory", "DiskFull", "DatabaseConnectionFailed"]),
        ];
        for (class, names) in lists {
            for name in names {
                assert_eq!(from_seed_name(name).unwrap().class(), class, "{name}");
            }
        }
    }
}
