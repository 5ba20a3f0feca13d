//! What tools of every kind say in the same words: that a password is wrong, that somebody else
//! holds a lock, that a header is damaged. A phrase is a run of words; `*` stands for up to three
//! words between.
//!
//! No phrase is of one tool. What a phrase is worth is measured, and a failure in which several
//! speak is for the learned model to weigh.

use backstop_core::Reason;
use std::collections::HashMap;
use std::sync::LazyLock;

/// How many words `*` stands for at most.
const BETWEEN_MAX: usize = 3;
/// How many words of a line are read.
const WORDS_MAX: usize = 80;

/// What is recognised, the reason that it speaks for, and its phrases, one to a line or a comma.
const PHRASES: &[(&str, Reason, &str)] = &[
    (
        "grammar.says_credential",
        Reason::AuthError,
        "authentication failed, authentication failure, authentication error, authentication
         required, authorization failed, authorization failure, authorization required, authfail,
         not authenticated, unauthenticated, failed to authenticate, could not authenticate,
         cannot authenticate, unable to authenticate, can't authenticate, password
         authentication, login failed, login incorrect, login required, login failure, log in
         again, not logged in, please log in, please login, run * login, must be logged in, need
         to login, need to log in, must log in, must login, invalid credentials, bad credentials,
         wrong credentials, incorrect credentials, no credentials, missing credentials,
         credentials * not found, credentials * expired, locate credentials, find credentials,
         load credentials, default credentials, credentials * missing, credentials * invalid,
         credential * required, credentials * required, invalid api key, api key * required, api
         key * missing, api key * invalid, api key * must, api key * not, no api key, missing api
         key, api_key * must, api_key * required, api_key * missing, provide an api key, set *
         api_key, invalid token, token * expired, token * invalid, token * required, expired
         token, invalid access token, missing token, no token, no auth, noauth, wrongpass,
         unauthorized, not authorized, invalid_grant, invalid_client, signature * not match,
         invalid signature key, session * expired, account * locked, account * disabled, account
         * suspended, access key * not exist, no * identity, invalid user, unknown user name,
         user * not allowed to log, bad user, auth failed, auth error, failed auth, requires
         authentication, requires login, authenticate first, set * token, no authentication",
    ),
    (
        "grammar.says_password",
        Reason::AuthError,
        "wrong password, wrong passphrase, wrong key, incorrect password, incorrect passphrase,
         invalid password, invalid passphrase, bad password, bad passphrase, bad decrypt,
         password * incorrect, passphrase * incorrect, password * wrong, password * invalid,
         passphrase * wrong, password required, passphrase required, password * required, no
         password, password failed, decryption failed, failed to decrypt, cannot decrypt, could
         not decrypt, can't decrypt, unable to decrypt, no key available, no secret key, no
         private key, no * key found, with this passphrase, no identity matched, incorrect key,
         invalid key, bad key, need * passphrase",
    ),
    (
        "grammar.says_forbidden",
        Reason::AuthError,
        "forbidden, access denied, access is denied, access to * denied, request denied, not
         allowed to access",
    ),
    (
        "grammar.says_root",
        Reason::PermissionDenied,
        "must be root, must run * root, only * as root, run as root, run * as root, are you root,
         superuser, super user, need root, needs root, non root, requires root, require root,
         root privileges, root permissions, root access, only root, only by root, as
         administrator, elevated, with sudo, use sudo, operation not permitted, permission
         denied, not permitted, insufficient permissions, insufficient permission, insufficient
         privileges, insufficient privilege, read only file system, read only filesystem, not
         writable, isn't writable, not writeable, can't write to, cannot write to, not readable,
         right permissions, correct permissions, no permission, lacks permission, not have
         permission, don't have permission, must be owner, not * owner, privileges required,
         write access, must be privileged, setuid, permission to, may not be used by, access
         rights",
    ),
    (
        "grammar.says_held",
        Reason::ResourceContention,
        "already running, another * running, another * in progress, another process, another
         instance, another program, is locked, are locked, was locked, locked by, locked for,
         could not acquire, failed to acquire, can't acquire, cannot acquire, unable to acquire,
         acquire the lock, acquire lock, unable to lock, could not lock, couldn't lock, cannot
         lock, can't lock, failed to lock, create acquire the lock, failed to * lock, could not *
         lock, unable to * lock, cannot * lock, can't * lock, lock file, lockfile, lock timeout,
         lock wait, lock request, deadlock, resource busy, device busy, device or resource busy,
         is busy, target busy, in use by, address already in use, address in use, port * in use,
         port * already, already in use, currently in use, being used by, text file busy,
         resource temporarily unavailable, obtain lock, obtain the lock, obtain a lock, get lock,
         get a lock, get the lock, take the lock, hold the lock, holds the lock, holding the
         lock, held by, is in use, are in use, already locked, other process, other instance, is
         already open, stale lock, remove the lock, delete lock, busy try, in progress by, lock
         held",
    ),
    (
        "grammar.says_unreachable",
        Reason::NetworkTransient,
        "connection refused, connection reset, connection closed, connection timed out,
         connection timeout, connection aborted, connection lost, connection failed, connection
         failure, connection error, connection broken, connection dropped, connection terminated,
         connection attempt failed, connection was closed, connection was reset, connection was
         refused, connection to * failed, connection to * refused, connection to * lost, lost
         connection, failed to connect, fail to connect, fail connecting, failed connecting,
         could not connect, couldn't connect, cannot connect, can't connect, unable to connect,
         error connecting, unable to contact, cannot contact, can't contact, could not contact,
         could not reach, couldn't reach, unable to reach, cannot reach, can't reach, failed to
         reach, failed to contact, unreachable, no route to host, no response, not responding,
         did not respond, didn't respond, not respond, closed the connection, closed connection,
         closed by * host, closed by * peer, closed by * server, remote end closed, remote host
         closed, broken pipe, network is down, host is down, socket error, socket hang up,
         transport endpoint, transport indicated, protocol banner, server gone away, server has
         gone away, server closed, no servers available, no * servers, all * brokers, no brokers,
         brokers * down, broker transport, communications link, network error, network failure,
         error communicating, failed to establish, establish a connection, establish connection,
         handshake failed, handshake timed out, i o timeout, io timeout, read timeout, read timed
         out, connect timeout, connect timed out, request timed out, request timeout, operation
         timed out, timeout was reached, gateway timeout, no reply, no answer, connect failed,
         connect error, could not be reached, can not connect, not connect to, dial tcp, lookup
         timed out, stream lost, unexpected eof while reading, remote disconnected,
         streamlosterror, disconnected",
    ),
    (
        "grammar.says_unavailable",
        Reason::NetworkTransient,
        "temporarily unavailable, service unavailable, server unavailable, is unavailable,
         currently unavailable, bad gateway, internal server error, under maintenance, to
         maintenance, in maintenance, maintenance mode, is not running, isn't running, not
         running, is the server running, is the * running, is * running on, not ready yet, not
         yet ready, overloaded, loading the dataset, try again later, please try again, later try
         again, retry later, max retries, retries exceeded, maximum retries, max retry, 502, 503,
         504, http 500, 500 internal, status 500, status code 500, server error, service * not
         available, temporary failure, temporary error, temporarily, starting up, shutting down,
         unavailable",
    ),
    (
        "grammar.says_timed_out",
        Reason::NetworkTransient,
        "timed out, time out, timeout, deadline exceeded, timedout",
    ),
    (
        "grammar.says_host",
        Reason::NetworkPermanent,
        "name or service not known, name resolution, resolve host, resolve hostname, resolve the
         host, could not resolve, couldn't resolve, cannot resolve, can't resolve, unable to
         resolve, failed to resolve, nxdomain, no such host, unknown host, bad hostname, no
         address associated, host not found, hostname * not, getaddrinfo, enotfound, nodename nor
         servname, lookup failed, address not found, not known, remote host, dns lookup, dns
         error, no address",
    ),
    (
        "grammar.says_certificate",
        Reason::NetworkPermanent,
        "certificate, self signed, x509, hostname mismatch, unknown authority, local issuer, ssl
         error, ssl routines, tls error, tls handshake, sslerror, unknown ca, wrong version
         number, certificate_verify_failed",
    ),
    (
        "grammar.says_gone",
        Reason::NetworkPermanent,
        "404 not found, status 404, http 404, error 404, 404, 410 gone, gone, too many redirects, redirect,
         repository not found, bucket * not exist, no such bucket, nosuchbucket",
    ),
    (
        "grammar.says_rate",
        Reason::RateLimited,
        "rate limit, rate limited, rate limiting, ratelimit, too many requests, 429, throttled,
         throttling, slow down, requests per, retry after, too many * issued, too many * already,
         try again in",
    ),
    (
        "grammar.says_quota",
        Reason::QuotaExhausted,
        "quota exceeded, quota * exceeded, over quota, exceeded * quota, mailbox full,
         insufficient credits, insufficient funds, insufficient balance, insufficient_quota,
         payment required, upgrade your plan, billing, resource_limit_exceeded, spending limit, out
         of credits, plan limit, monthly limit, space exceeded, credit balance",
    ),
    (
        "grammar.says_resource",
        Reason::ResourceExhausted,
        "no space left, disk quota, disk full, disk is full, not enough space, not enough disk,
         insufficient space, out of memory, outofmemory, cannot allocate, can't allocate, could
         not allocate, unable to allocate, failed to allocate, not enough memory, insufficient
         memory, memory exhausted, memory limit, oom, heap exhausted, heap space, heap overflow,
         memory fault, too many open files, file too large, argument list too long, resource
         limit, resource limits, exceeds * limit, exceeds maximum, cache resources, too many
         processes, stack overflow, recursion, out of disk, volume full, device full, virtual
         memory, memory pool, no more space, file size limit, cpu time limit, time limit, memory",
    ),
    (
        "grammar.says_install",
        Reason::DependencyMissing,
        "no module named, modulenotfounderror, importerror, cannot find module, can't find
         module, could not be loaded, not installed, isn't installed, please install, pip
         install, npm install, npm i, yarn add, apt install, apt get install, gem install, brew
         install, go get, cargo add, cpan, install it, install the, to be installed, have *
         installed, is * installed, must be installed, need to install, needs to be installed,
         command not found, not found in path, in your path, in path, on path, your path, unmet
         dependencies, unmet build, unmet dependency, missing dependency, missing dependencies,
         dependencies are missing, dependency missing, missing required dependency, missing
         library, missing package, missing module, missing plugin, missing optional, optional
         dependency, broken dependencies, unsatisfied, no matching distribution, no candidate,
         installation candidate, not available for package, shared object file, shared libraries,
         library not found, unresolved import, unknown module, unresolved module, find unit,
         resolve class, unable to resolve dependency, executable file not found, exec error,
         execvp, no interpreter, no such module, no such package, no such plugin, no such
         library, no backend, backend * available, backend * installed, no recommended backend,
         version * required, requires version, requires node, requires python, requires ruby,
         requires a * version, incompatible version, not part of the design, locate package, find
         package, find a package, find the package, find library, find executable, find program,
         find gem, find crate, find driver, driver not found, driver * not, load driver, no
         driver, plugin not found, package not found, module not found, program not found,
         executable not found, library not, could not import, cannot import, can't import, failed
         to import, unable to import, error importing, failed to load plugin, load plugin, unable
         to load, provider not found, does not appear to be installed, no package, container
         runtime, requires * installed, extension not found, runtime not found, sdk not found,
         toolchain not found, not found in the registry, could not locate * gem, requires the, is
         required but, you need, not available on this system, is not available, cannot load
         module, can't load, failed loading, unable to locate, no provider, not found on your
         system, missing executable",
    ),
    (
        "grammar.says_syntax",
        Reason::CompileError,
        "syntax error, parse error, syntaxerror, parser error, parsing error, syntax exception,
         bad syntax, invalid syntax, unexpected token, unexpected symbol, unexpected identifier,
         unexpected keyword, unexpected end of input, unexpected end of file, unexpected
         character, unexpected newline, unexpected indent, unterminated, missing semicolon,
         missing parenthesis, missing closing, unmatched, unbalanced, mismatched, unclosed,
         expected expression, expected identifier, expected statement, expected one of,
         expecting, garbled",
    ),
    (
        "grammar.says_undefined",
        Reason::CompileError,
        "undefined function, undefined symbol, undefined symbols, undefined reference, undefined
         variable, undefined identifier, undefined control sequence, undefined method, undefined
         type, undefined name, undefined macro, undefined label, undefined word, undeclared, not
         declared, isn't declared, unknown identifier, unknown variable, unknown function,
         unknown type, unknown symbol, unknown instruction, unknown operator, unknown directive,
         unknown macro, unknown variables, unresolved identifier, unresolved symbol, unresolved
         external, unresolved reference, cannot find symbol, not in scope, in this scope, is not
         defined, not defined, is undefined, type mismatch, type error, incompatible types,
         incompatible type, types do not match, cannot unify, does not type, duplicate
         definition, already defined, redefinition, redefined, operand, operands, invalid
         instruction, instruction expected, compilation failed, compilation error, compilation
         aborted, compile error, failed to compile, compilation terminated, build failed, could
         not compile, error compiling, errors during compilation, return type, no instance",
    ),
    (
        "grammar.says_thrown",
        Reason::Crash,
        "division by zero, divide by zero, divided by zero, null pointer, null reference, nil
         value, nil pointer, index out of, out of range, out of bounds, subscript out, array
         index, stack trace, stack traceback, traceback, backtrace, call stack, call history,
         segmentation fault, segfault, core dumped, panic, panicked, assertion failed, assertion
         failure, assertion violated, runtime error, run time error, uncaught exception,
         unhandled exception, uncaught error, exception raised, exception error, exception in,
         program error, pattern match failure, no match of, non exhaustive, bad argument type,
         wrong type argument, attempt to index, attempt to call, attempt to perform, attempt to
         compare, attempt to concatenate, cannot read property, cannot read properties, is not a
         function, is not iterable, internal error, internal compiler error, this is a bug,
         report this bug, please report, bug report, unreachable code, stack underflow, is
         unbound, unbound variable, not a number, bad arithmetic, arithmetic error, abnormal
         termination, aborted core, illegal instruction, bus error, floating point exception,
         unexpected error, undefined is not, raised at, called from, called at, in call from,
         error in function, fatal error in, exit signal, badmatch, badarg, function_clause,
         typeerror, valueerror, keyerror, nullpointerexception, cannot convert undefined,
         undefined method for, nil, fatal exception, terminated abnormally, terminating",
    ),
    (
        "grammar.says_tests",
        Reason::TestFailure,
        "tests failed, test failed, test failures, failing tests, failed tests, tests did not
         pass, tests failing, but got, but was, expected * got, expected * actual,
         assertionerror, test suite, test case, test cases, passed failed, not ok, examples
         failed, scenarios failed, unexpected failures, failed test, test results, unit test,
         unit testing, unit tests, checks failed, exp got, assertions failed, test files, test
         suites, test run, ran tests, tests run, snapshot * not match, mutation score,
         counterexample, falsified, falsifiable",
    ),
    (
        "grammar.says_findings",
        Reason::LintError,
        "trailing whitespace, unused variable, unused import, unused, missing docstring,
         violations, violation, hints, possible bashism, potential, consider using, is
         deprecated, deprecated, vulnerabilities, vulnerability, cve, coverage, below threshold,
         threshold, linting, lint, linter, too complex, complexity, too long, line too long,
         naming convention, should be, should have, should not, recommended, recommendation,
         style, never used, redundant, duplicated, duplicate code, misspelled, misspelling,
         spelling, misspellings, suspicious, insecure, hardcoded, rules matched, rule was
         matched, issues found, issues, problems, secrets, secret, dead link, dead links, broken
         link, broken links, todo, extra requirements, missing requirements, dead code, smell,
         code quality, treated as errors, treated as error, severity, outdated, license,
         licenses, not documented, no documentation, undocumented, docstring, indentation,
         semicolon, quotes, whitespace, tabs, naming, best practice, security",
    ),
    (
        "grammar.says_format",
        Reason::FormatError,
        "would be reformatted, would reformat, would be formatted, would be changed, would have,
         would change, not formatted, not sorted, isn't formatted, incorrectly formatted, wrongly
         formatted, badly formatted, needs formatting, need formatting, should be formatted,
         clang formatted, be reformatted, needs reformatting, code style issues, formatting
         issues, formatting errors, formatting differences, formatting, reformat, reformatted,
         incorrectly sorted, unsorted, run * format, run * fmt, run * write, to fix formatting,
         differs from, dry run",
    ),
    (
        "grammar.says_history",
        Reason::VcsError,
        "merge conflict, merge conflicts, conflicts, conflict, unresolved, not * git repository,
         no * repository, version control, diverged, nothing changed, nothing to commit, no
         changes, working directory, working tree, uncommitted, uncommitted changes, not clean,
         dirty, unstaged, branch, branches, on branch, detached head, tag, tags, no tags, commit,
         commits, commit failed, revision, unknown revision, out of date, not up to date, remote,
         fast forward, push, pull, rebase, merge, fresh clone, clone, checkout, changeset,
         working copy, refusing to",
    ),
    (
        "grammar.says_damaged",
        Reason::Validation,
        "premature end, unexpected end of data, unexpected end of stream, unexpected eof,
         unexpected end, truncated, malformed, not well formed, well formed, corrupt, corrupted,
         corruption, damaged, bad magic, magic number, magic, invalid header, improper image
         header, bad header, header not found, no header, signature not found, file signature,
         superblock, checksum, bad checksum, checksum mismatch, crc, hash mismatch, digest,
         unsupported format, unrecognized format, unknown format, not a valid, is not valid,
         isn't valid, not a zip, not in gzip format, not a * file, not a * archive, not an *
         file, is not archive, not archive, not an, cannot open the file as, no images defined,
         illegal input sequence, invalid byte, invalid utf, not utf, encoding, non ascii, codec
         can't decode, invalid character, invalid data, bad data, length mismatch, cannot
         identify, cannot decode, can't decode, failed to decode, could not parse, failed to
         parse, cannot parse, can't parse, unable to parse, invalid json, invalid yaml, invalid
         xml, not valid json, cannot read input, could not process, read frame, invalid pdf,
         riff, end of file, tag mismatch, empty document, extra data, trailing characters,
         duplicate key, not unique, column names, number of columns, wrong number of fields,
         invalid record, invalid signature, bad signature, invalid checksum, invalid length,
         invalid block, bad block, invalid archive, file is empty, empty file, is empty, cannot
         be parsed, could not be parsed, cannot be read, unsupported version, unsupported
         encoding, invalid document, invalid input, invalid row, cannot convert, could not
         convert, conversion failed, inconsistent, unexpected data, invalid stream, bad format
         in, no valid, invalid image, invalid file, cannot determine, unknown file type,
         unrecognized file",
    ),
    (
        "grammar.says_rule_broken",
        Reason::Validation,
        "unknown field, unknown key, unknown property, unknown element, unknown attribute,
         unknown tag, unknown column, additional properties, not allowed, is not allowed,
         required property, required field, is required, are required, missing field, missing
         property, missing key, missing attribute, required attribute, requires attribute,
         violates, violation of, constraint, unique constraint, foreign key, not null, schema,
         validation failed, validation error, validation errors, failed validation, does not
         validate, does not conform, does not match, do not match, not match, mismatch, must
         match, must be a, must be an, must be one of, must be specified, must contain, must
         have, must not, invalid value, invalid type, invalid property, invalid field, invalid
         date, invalid number, not a valid duration, already exists, duplicate, duplicate entry,
         conflict, no such table, no such column, no such key, no such index, no such collection,
         unknown database, unknown table, not exist in, unprocessable, bad request, 400, 409,
         413, 422, rejected, was rejected, not accepted, too large, too short, object class
         violation, not supported by, cannot index, cycle, circular, expected type, is not a
         valid, is invalid, not registered, unregistered, has no attribute, key not found, not a
         string, not a number, not an integer, wrong type, unexpected element, unexpected
         property, unexpected key, unexpected field, unexpected attribute, value too long, cannot
         cast, not allowed here, not permitted here, failed constraint, out of sequence, not
         compatible, incompatible schema, extra fields, extra inputs, input should be, expected
         object, expected string, expected array, cannot be null, cannot be empty, cannot be
         blank, must be unique, no such record, not a member",
    ),
    (
        "grammar.says_called",
        Reason::InvalidUsage,
        "not specified, is not specified, no * specified, no * provided, no * given, no input,
         nothing to do, must specify, must provide, must supply, must give, you must, please
         specify, please provide, please supply, need to specify, not recognized, unrecognized,
         unrecognised, not recognised, unknown option, unknown command, unknown argument, unknown
         parameter, unknown format, unknown flag, unknown subcommand, unknown target, unknown
         task, unknown type, unknown encoder, unknown codec, unknown filter, unknown output,
         unknown device, unknown terminal, invalid option, invalid argument, invalid value for,
         invalid output, invalid format, invalid image type, invalid choice, invalid mode,
         invalid level, invalid number of, invalid port, invalid date, invalid time, invalid
         size, invalid range, invalid flag, invalid url, invalid specification, invalid version
         specified, illegal option, bad option, bad argument, bad value, bad format, unsupported
         option, unsupported format, unsupported type, use one of, one of, choose from, valid
         values, valid options, available options, supported options, supported formats, possible
         values, allowed values, supported values, valid choices, available commands, available
         targets, available tasks, too many arguments, too few arguments, missing argument,
         missing arguments, expected argument, requires an argument, argument required, requires
         argument, requires at least, mutually exclusive, cannot be combined, cannot be used,
         can't be used, incompatible with, conflicts with, did you mean, out of range, must be
         between, must be positive, must be an integer, is not a number, is not a directory, not
         a directory, is a directory, does not exist, doesn't exist, no such file, no such file
         or directory, file not found, cannot find file, cannot open, can't open, could not open,
         couldn't open, unable to open, failed to open, wasn't found, config file, configuration
         file, no configuration, no config, could not find config, in config, configuration
         error, config error, invalid configuration, bad configuration, configuration failed,
         option, argument, arguments, parameter, flag, specify a, not a valid command, no such
         command, no such option, no such subcommand, no task, no target, no rule, target not
         found, task not found, not a command, missing operand, no files, no file, no matching
         files, no files matched, no match, nothing matched, no arguments, expected at least,
         expects, takes, invalid path, invalid regex, not an option, is required when,
         conflicting options, conflicting, ambiguous, unknown language, unknown mode, unknown
         backend, unknown profile, unknown environment, unsupported value, not supported, is not
         supported, unsupported, not implemented, no such target, no such task, no such profile,
         no such device, unable to find file, missing file, missing input, missing url, missing
         command, use force, overwrite, in the current directory, current directory, no such
         directory, directory not found, not a file, not a project, no project, can't stat,
         cannot stat, could not stat, cannot access, can't access",
    ),
    (
        "grammar.says_inner",
        Reason::ToolFailed,
        "exited with, exit status, exit code, returned non zero, non zero exit, nonzero exit,
         returned an error, error code, failed to run, command failed, script failed, hook
         failed, hook script, job failed, task failed, step failed, jobs failed, failed tasks,
         failed jobs, stage failed, did not complete, not complete successfully, child exited,
         returned 1, returned error, sub process, subprocess, child process, running non shared,
         error running, error executing, failed with exit, with status, ended with status",
    ),
    (
        "grammar.says_interrupted",
        Reason::Interrupted,
        "interrupted, interrupt, received signal, sigint, sigterm, signal 2, signal 15,
         keyboardinterrupt, cancelled, canceled, aborted by, terminated by signal, ctrl c, user
         abort, caught signal, got signal",
    ),
];

type Found = Vec<(Vec<&'static str>, usize)>;

/// The phrases by their first word.
static BY_WORD: LazyLock<HashMap<&'static str, Found>> = LazyLock::new(|| {
    let mut all: HashMap<&'static str, Found> = HashMap::new();
    for (index, (_, _, phrases)) in PHRASES.iter().enumerate() {
        for phrase in phrases.split(',') {
            let mut words = phrase.split_whitespace();
            let Some(first) = words.next() else { continue };
            all.entry(first).or_default().push((words.collect(), index));
        }
    }
    all
});

/// What a lower-case line says.
pub(super) fn read(line: &str) -> Vec<(&'static str, Reason)> {
    let is_inside = |c: char| c.is_ascii_alphanumeric() || matches!(c, '\'' | '_');
    let words = line.split(|c: char| !is_inside(c)).map(|word| word.trim_matches('\''));
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).take(WORDS_MAX).collect();
    let mut said: u64 = 0;
    for (at, word) in words.iter().enumerate() {
        for (rest, index) in BY_WORD.get(word).into_iter().flatten() {
            if said & 1 << index == 0 && follows(&words[at + 1..], rest) {
                said |= 1 << index;
            }
        }
    }
    let named = PHRASES.iter().enumerate().filter(|(index, _)| said & 1 << index != 0);
    named.map(|(_, (kind, reason, _))| (*kind, *reason)).collect()
}

/// Whether these words begin with a phrase.
fn follows(words: &[&str], phrase: &[&str]) -> bool {
    match phrase.split_first() {
        None => true,
        Some((&"*", rest)) => {
            (0..=BETWEEN_MAX.min(words.len())).any(|between| follows(&words[between..], rest))
        }
        Some((first, rest)) => words.first() == Some(first) && follows(&words[1..], rest),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_words_say_the_same_of_any_tool() {
        let says = |line: &str, kind: &str| read(line).iter().any(|(known, _)| *known == kind);
        assert!(says("fatal: wrong password or no key found", "grammar.says_password"));
        assert!(says("the passphrase in borg_x is incorrect", "grammar.says_password"));
        assert!(says("another frob process is already running", "grammar.says_held"));
        assert!(says("could not create the lock: exists", "grammar.says_held"));
        assert!(says("frob: must be super-user to do this", "grammar.says_root"));
        assert!(says("can't connect to the 'frob' server", "grammar.says_unreachable"));
        assert!(!says("it could be that a very long way lies between this and a lock", "grammar.says_held"));
        assert!(read("all went well").is_empty() && read("").is_empty());
    }

    #[test]
    fn phrases_fit_in_the_set_and_are_lower_case_words() {
        assert!(PHRASES.len() <= 64);
        for (kind, _, phrases) in PHRASES {
            for word in phrases.split(',').flat_map(str::split_whitespace) {
                let fits =
                    |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '\'' | '_' | '*');
                assert!(word.chars().all(fits), "{kind}: {word}");
            }
        }
    }
}
