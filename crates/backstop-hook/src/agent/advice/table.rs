//! The errors of agents' own tools, as they are worded by Claude Code, Codex and OpenCode, and what
//! to do about each. The first entry that matches counts: what is more special stands before what
//! is more general.

use super::OwnTool::{Agent, Edit, Fetch, Notebook, Read, Search, Shell, WebSearch, Write};
use super::ToolError;
use backstop_core::Reason;

pub(in crate::agent) const ADVICE: &[ToolError] = &[
    // Reading
    ToolError {
        tools: &[Read],
        says: &[
            &["file does not exist"],
            &["file not found"],
            &["no such file or directory"],
            &["enoent"],
            &["path does not exist"],
        ],
        reason: Some(Reason::InvalidUsage),
        advice: "Find where the file is with a search for its name, and read it by the path that the search shows; do not guess another path.",
        matches: &[
            ("Read", "File does not exist. Did you mean notes.md?"),
            ("Read", "<tool_use_error>File does not exist.</tool_use_error>"),
            ("read", "Error: File not found: /x/a.rs"),
            ("read_file", "failed to read file: No such file or directory (os error 2)"),
        ],
        misses: &[
            ("Read", "EISDIR: illegal operation on a directory, read"),
            ("Edit", "File does not exist."),
        ],
    },
    ToolError {
        tools: &[Read],
        says: &[&["eisdir"], &["is a directory"], &["not a file"]],
        reason: Some(Reason::InvalidUsage),
        advice: "List the folder first, then read one of the files in it.",
        matches: &[
            ("Read", "EISDIR: illegal operation on a directory, read '/x/src'"),
            ("read", "Path is a directory, not a file: /x/src"),
        ],
        misses: &[("Read", "File does not exist."), ("Write", "EISDIR: illegal operation on a directory")],
    },
    ToolError {
        tools: &[Read],
        says: &[
            &["exceeds maximum allowed"],
            &["file content", "exceeds"],
            &["file is too large"],
            &["too large to read"],
        ],
        reason: Some(Reason::InvalidParameters),
        advice: "Read a part of the file with `offset` and `limit`, or search it for the passage that you need.",
        matches: &[
            (
                "Read",
                "File content (31337 tokens) exceeds maximum allowed tokens (25000). Use offset and limit parameters to read specific portions of the file.",
            ),
            ("Read", "File content (402.1KB) exceeds maximum allowed size (256KB)."),
        ],
        misses: &[("Read", "File does not exist."), ("WebFetch", "file is too large")],
    },
    ToolError {
        tools: &[Read],
        says: &[
            &["shorter than the provided offset"],
            &["offset", "out of range"],
            &["offset", "beyond"],
            &["offset exceeds"],
        ],
        reason: Some(Reason::InvalidParameters),
        advice: "Read the file without `offset` first to see how many lines it has.",
        matches: &[
            (
                "Read",
                "Warning: the file exists but is shorter than the provided offset (900). The file has 12 lines.",
            ),
            ("read", "Offset 900 is out of range for this file (12 lines)"),
            ("read_file", "offset exceeds file length"),
        ],
        misses: &[(
            "Read",
            "File content (31337 tokens) exceeds maximum allowed tokens. Use offset and limit.",
        )],
    },
    ToolError {
        tools: &[Read],
        says: &[
            &["binary file"],
            &["cannot read binary"],
            &["cannot be read as text"],
            &["unsupported image"],
        ],
        reason: Some(Reason::InvalidUsage),
        advice: "Look at the file with a program that knows its format, such as `file`, `xxd` or `unzip -l`, not as text.",
        matches: &[
            ("Read", "This tool cannot read binary files. The file appears to be a binary .so file."),
            ("read", "Cannot read binary file: /x/a.bin"),
        ],
        misses: &[("Read", "File does not exist.")],
    },
    // Editing
    ToolError {
        tools: &[Edit],
        says: &[
            &["string to replace not found"],
            &["oldstring not found"],
            &["could not find oldstring"],
            &["old_string not found"],
            &["failed to find expected lines"],
            &["failed to find context"],
            &["invalid context"],
        ],
        reason: Some(Reason::Validation),
        advice: "Read the passage again, and copy the text to replace from it exactly, with its spaces and tabs and without line numbers.",
        matches: &[
            ("Edit", "String to replace not found in file.\nString: x"),
            (
                "MultiEdit",
                "<tool_use_error>String to replace not found in file.\nString: foo</tool_use_error>",
            ),
            ("edit", "oldString not found in content"),
            (
                "apply_patch",
                "apply_patch verification failed: Failed to find expected lines in /x/a.rs:\nfn a() {",
            ),
        ],
        misses: &[
            ("Edit", "Found 3 matches of the string to replace, but replace_all is false."),
            ("Read", "String to replace not found in file."),
        ],
    },
    ToolError {
        tools: &[Edit],
        says: &[
            &["found", "matches of the string to replace"],
            &["found multiple matches"],
            &["multiple occurrences"],
            &["is not unique"],
        ],
        reason: Some(Reason::Validation),
        advice: "Add lines around the text to replace until it is unique, or set `replace_all` if every one of them is meant.",
        matches: &[
            (
                "Edit",
                "Found 3 matches of the string to replace, but replace_all is false. To replace all occurrences, set replace_all to true.",
            ),
            ("edit", "Found multiple matches for oldString. Provide more surrounding lines."),
        ],
        misses: &[
            ("Edit", "String to replace not found in file."),
            ("Grep", "Found 3 matches of the string to replace"),
        ],
    },
    ToolError {
        tools: &[Edit, Write, Notebook],
        says: &[
            &["has not been read yet"],
            &["must read the file"],
            &["must read file", "before"],
            &["read it first"],
        ],
        reason: Some(Reason::Validation),
        advice: "Read the file first, then make the change on what it holds now.",
        matches: &[
            ("Edit", "File has not been read yet. Read it first before writing to it."),
            ("Write", "File has not been read yet. Read it first before writing to it."),
            ("edit", "You must read the file /x/a.rs before overwriting it. Use the Read tool first"),
        ],
        misses: &[("Edit", "File has been modified since read, either by the user or by a linter.")],
    },
    ToolError {
        tools: &[Edit, Write, Notebook],
        says: &[
            &["has been modified since"],
            &["modified since it was last read"],
            &["unexpectedly modified"],
        ],
        reason: Some(Reason::Validation),
        advice: "Read the file again, and make your change on top of what somebody else has written meanwhile.",
        matches: &[
            (
                "Edit",
                "File has been modified since read, either by the user or by a linter. Read it again before attempting to write it.",
            ),
            ("write", "File /x/a.rs has been modified since it was last read."),
        ],
        misses: &[("Edit", "File has not been read yet. Read it first before writing to it.")],
    },
    ToolError {
        tools: &[Edit],
        says: &[
            &["no changes to make"],
            &["old_string and new_string are exactly the same"],
            &["oldstring and newstring", "identical"],
            &["must be different"],
        ],
        reason: Some(Reason::Validation),
        advice: "Check whether the change is in the file already; if it is, go on with the next step.",
        matches: &[
            ("Edit", "No changes to make: old_string and new_string are exactly the same."),
            ("edit", "No changes to apply: oldString and newString are identical."),
            ("edit", "oldString and newString must be different"),
        ],
        misses: &[("Edit", "String to replace not found in file.")],
    },
    ToolError {
        tools: &[Edit],
        says: &[
            &["invalid patch"],
            &["invalid hunk"],
            &["the first line of the patch must be"],
            &["the last line of the patch must be"],
            &["patch", "malformed"],
        ],
        reason: Some(Reason::InvalidParameters),
        advice: "Write the patch in the form that the tool describes, from `*** Begin Patch` to `*** End Patch`.",
        matches: &[
            (
                "apply_patch",
                "apply_patch verification failed: invalid patch: The first line of the patch must be '*** Begin Patch'",
            ),
            ("apply_patch", "invalid hunk at line 3"),
        ],
        misses: &[("apply_patch", "Failed to find expected lines in /x/a.rs")],
    },
    ToolError {
        tools: &[Edit],
        says: &[&["file does not exist"], &["file not found"], &["no such file or directory"], &["enoent"]],
        reason: Some(Reason::InvalidUsage),
        advice: "Find where the file is with a search for its name; to make a new file, write it as a whole.",
        matches: &[
            ("Edit", "File does not exist."),
            ("edit", "File /x/a.rs not found\nError: file not found"),
            ("apply_patch", "Failed to read file to update /x/a.rs: No such file or directory (os error 2)"),
        ],
        misses: &[("Read", "File does not exist."), ("Edit", "String to replace not found in file.")],
    },
    // Notebooks
    ToolError {
        tools: &[Notebook],
        says: &[&["cell", "not found"], &["cell", "does not exist"], &["cell", "out of"]],
        reason: Some(Reason::InvalidParameters),
        advice: "Read the notebook again, and use the id of a cell that is in it.",
        matches: &[
            ("NotebookEdit", "Cell with ID \"abc\" not found in notebook."),
            ("NotebookEdit", "Cell with index 9 does not exist in notebook."),
        ],
        misses: &[("NotebookEdit", "File has not been read yet."), ("Edit", "Cell with ID not found")],
    },
    ToolError {
        tools: &[Notebook],
        says: &[&["must be a jupyter notebook"], &["not a valid", "notebook"], &["not valid json"]],
        reason: Some(Reason::InvalidParameters),
        advice: "Give the path of an `.ipynb` file here, and use the edit tool for every other file.",
        matches: &[
            (
                "NotebookEdit",
                "File must be a Jupyter notebook (.ipynb file). For editing other file types, use the FileEdit tool.",
            ),
            ("NotebookEdit", "Notebook is not valid JSON."),
        ],
        misses: &[("NotebookEdit", "Cell with ID \"abc\" not found in notebook.")],
    },
    // Files that may not be touched
    ToolError {
        tools: &[Read, Edit, Write, Notebook, Search],
        says: &[
            &["eacces"],
            &["eperm"],
            &["erofs"],
            &["permission denied"],
            &["operation not permitted"],
            &["read-only file system"],
        ],
        reason: Some(Reason::PermissionDenied),
        advice: "Work on files that you may use, and name this one to the user; do not change its rights.",
        matches: &[
            ("Write", "EACCES: permission denied, open '/etc/hosts'"),
            ("read", "EPERM: operation not permitted, open '/x'"),
            ("Grep", "rg: /root: Permission denied (os error 13)"),
        ],
        misses: &[("Bash", "EACCES: permission denied"), ("Write", "ENOSPC: no space left on device")],
    },
    ToolError {
        tools: &[Read, Edit, Write, Notebook, Search],
        says: &[
            &["denied by your permission settings"],
            &["outside", "working director"],
            &["not allowed", "director"],
            &["writing outside of the project"],
            &["permission to use", "has been denied"],
            &["user rejected permission"],
            &["user doesn't want to"],
        ],
        reason: Some(Reason::PermissionDenied),
        advice: "Stay within the folders and permissions of this session, or ask the user to allow this one.",
        matches: &[
            ("Read", "File is in a directory that is denied by your permission settings."),
            ("Write", "Path /etc/x is outside the allowed working directories"),
            (
                "apply_patch",
                "patch rejected: writing outside of the project; rejected by user approval settings",
            ),
            ("edit", "The user rejected permission to use this specific tool call."),
        ],
        misses: &[("Write", "EACCES: permission denied, open '/etc/hosts'")],
    },
    // Writing
    ToolError {
        tools: &[Write, Edit, Notebook],
        says: &[&["enospc"], &["no space left"], &["edquot"], &["disk quota exceeded"]],
        reason: Some(Reason::DiskFull),
        advice: "Write nothing more, and tell the user that the disk is full; delete only files that you made yourself.",
        matches: &[("Write", "ENOSPC: no space left on device, write")],
        misses: &[("Write", "EACCES: permission denied"), ("Bash", "ENOSPC: no space left on device")],
    },
    ToolError {
        tools: &[Write],
        says: &[
            &["eisdir"],
            &["is a directory"],
            &["enotdir"],
            &["not a directory"],
            &["enoent"],
            &["no such file or directory"],
        ],
        reason: Some(Reason::InvalidUsage),
        advice: "Check the path: each part before the last must be a folder that exists, and the last must be a file.",
        matches: &[
            ("Write", "EISDIR: illegal operation on a directory, open '/x/src'"),
            ("write", "ENOTDIR: not a directory, mkdir '/x/a.rs/b'"),
        ],
        misses: &[
            ("Write", "File has not been read yet."),
            ("Read", "EISDIR: illegal operation on a directory"),
        ],
    },
    // Commands
    ToolError {
        tools: &[Shell],
        says: &[
            &["command timed out after"],
            &["command timed out"],
            &["exceeded the timeout"],
            &["exceeding timeout"],
            &["terminated command after exceeding"],
        ],
        reason: Some(Reason::Timeout),
        advice: "Find out what it had done when it was ended, then do less in one call, raise the call's timeout, or run it in the background.",
        matches: &[
            ("Bash", "Command timed out after 2m 0s"),
            ("bash", "bash tool terminated command after exceeding timeout 120000 ms"),
            ("shell", "command timed out after 10000 milliseconds"),
        ],
        misses: &[
            ("Bash", "Error: connect ETIMEDOUT 10.0.0.1:443"),
            ("WebFetch", "command timed out after 60s"),
        ],
    },
    ToolError {
        tools: &[Shell],
        says: &[
            &["permission to use", "has been denied"],
            &["requires approval"],
            &["rejected by user"],
            &["user rejected"],
            &["user doesn't want to"],
            &["denied by your permission settings"],
            &["blocked by sandbox"],
            &["sandbox", "denied"],
        ],
        reason: Some(Reason::PermissionDenied),
        advice: "Use a command that this session allows, or ask the user to allow this one; do not dress it up as another.",
        matches: &[
            ("Bash", "Permission to use Bash with command rm -rf x has been denied."),
            ("shell", "exec command rejected by user"),
            ("exec_command", "Sandbox(Denied { output: .. }): sandbox denied exec error, exit code: 1"),
        ],
        misses: &[("Bash", "bash: ./x.sh: Permission denied"), ("Write", "rejected by user")],
    },
    ToolError {
        tools: &[Shell],
        says: &[
            &["no shell found with id"],
            &["shell not found"],
            &["unknown session id"],
            &["unknown process id"],
        ],
        reason: Some(Reason::InvalidParameters),
        advice: "Use the id that the start of the background command gave; if its shell has ended, look at what the command left.",
        matches: &[
            ("BashOutput", "No shell found with ID: bash_7"),
            ("unified_exec", "Unknown session id 12"),
        ],
        misses: &[("Bash", "bash: helmfile: command not found")],
    },
    ToolError {
        tools: &[Shell],
        says: &[
            &[": command not found"],
            &["command not found:"],
            &["is not recognized as an internal or external command"],
            &["is not recognized as the name of a cmdlet"],
        ],
        reason: None,
        advice: "Check how the program is spelt and whether the project has it under another name; if it is not installed, say so before you install it.",
        matches: &[
            ("Bash", "bash: line 1: helmfile: command not found"),
            ("bash", "zsh: command not found: helmfile"),
        ],
        misses: &[("Bash", "error: repository not found"), ("Bash", "bash: ./x.sh: Permission denied")],
    },
    // Searching
    ToolError {
        tools: &[Search],
        says: &[
            &["regex parse error"],
            &["invalid regular expression"],
            &["invalid regex"],
            &["unclosed group"],
            &["unrecognized escape"],
            &["repetition operator missing"],
            &["repetition quantifier"],
            &["invalid glob"],
            &["error parsing glob"],
        ],
        reason: Some(Reason::InvalidParameters),
        advice: "Escape the characters that mean something in a pattern, such as `\\(`, `\\{`, `\\[` and `\\.`, or search for a plain word of it.",
        matches: &[
            ("Grep", "ripgrep failed: regex parse error:\n    (?:foo()\nerror: unclosed group"),
            ("grep", "rg: error parsing glob '{a': unclosed alternate group"),
        ],
        misses: &[("Grep", "No matches found"), ("Bash", "regex parse error")],
    },
    ToolError {
        tools: &[Search],
        says: &[
            &["no matches found"],
            &["no files found"],
            &["no match"],
            &["found 0"],
            &["exit code 1"],
            &["exited with code 1"],
        ],
        reason: Some(Reason::Validation),
        advice: "Search for a shorter part of the name, without case, or in a folder further up, before you conclude that it is not there.",
        matches: &[
            ("Grep", "No matches found"),
            ("glob", "No files found"),
            ("grep_files", "rg exited with code 1"),
        ],
        misses: &[("Grep", "regex parse error: unclosed group"), ("Read", "no matches found")],
    },
    ToolError {
        tools: &[Search],
        says: &[
            &["path does not exist"],
            &["directory does not exist"],
            &["no such file or directory"],
            &["enoent"],
            &["is not a directory"],
            &["not a directory"],
        ],
        reason: Some(Reason::InvalidUsage),
        advice: "Search from the project's root first, and take the folder from what it finds.",
        matches: &[
            ("Glob", "Directory does not exist: /x/srcs"),
            ("Grep", "Path does not exist: srcs"),
            ("grep", "rg: srcs: IO error for operation on srcs: No such file or directory (os error 2)"),
        ],
        misses: &[("Grep", "No matches found"), ("Read", "File does not exist.")],
    },
    ToolError {
        tools: &[Search],
        says: &[&["timed out"], &["timeout"]],
        reason: Some(Reason::Timeout),
        advice: "Search in a smaller folder or for fewer file types.",
        matches: &[
            ("Grep", "Ripgrep search timed out after 20 seconds."),
            ("grep_files", "rg timed out after 30 seconds"),
        ],
        misses: &[("Grep", "No matches found"), ("WebFetch", "timeout of 60000ms exceeded")],
    },
    // The web
    ToolError {
        tools: &[Fetch],
        says: &[
            &["redirect detected"],
            &["redirects to a different host"],
            &["redirected to"],
            &["too many redirects"],
            &["maximum redirects"],
        ],
        reason: Some(Reason::Validation),
        advice: "Fetch the address that the redirect names, if you trust its host.",
        matches: &[
            (
                "WebFetch",
                "REDIRECT DETECTED: The URL redirects to a different host.\nRedirect URL: https://x.example/",
            ),
            ("webfetch", "Request failed: too many redirects"),
        ],
        misses: &[("WebFetch", "Request failed with status code 404"), ("Bash", "too many redirects")],
    },
    ToolError {
        tools: &[Fetch],
        says: &[
            &["unable to verify if domain"],
            &["domain", "is not safe to fetch"],
            &["domain", "blocked"],
            &["unable to fetch from"],
            &["not allowed by", "policy"],
            &["egress"],
        ],
        reason: Some(Reason::PermissionDenied),
        advice: "Look for the same information on a site that may be fetched or in the project itself, or ask the user for the page.",
        matches: &[
            (
                "WebFetch",
                "Unable to verify if domain x.example is safe to fetch. This may be due to network restrictions or enterprise security policies blocking claude.ai.",
            ),
            ("WebFetch", "Claude Code is unable to fetch from www.reddit.com"),
            ("WebFetch", "Domain x.example is blocked"),
        ],
        misses: &[("WebFetch", "Request failed with status code 403")],
    },
    ToolError {
        tools: &[Fetch],
        says: &[
            &["status code 401"],
            &["status code 403"],
            &["status code: 401"],
            &["status code: 403"],
            &["403 forbidden"],
            &["401 unauthorized"],
            &["http 403"],
            &["http 401"],
        ],
        reason: Some(Reason::AuthError),
        advice: "Use a tool that is logged in to that site, such as `gh` for GitHub, or another source that needs no login.",
        matches: &[
            ("WebFetch", "Request failed with status code 403"),
            ("webfetch", "Request failed with status code: 401"),
        ],
        misses: &[
            ("WebFetch", "Request failed with status code 404"),
            ("Bash", "Request failed with status code 403"),
        ],
    },
    ToolError {
        tools: &[Fetch],
        says: &[
            &["status code 404"],
            &["status code 410"],
            &["status code: 404"],
            &["status code: 410"],
            &["404 not found"],
            &["http 404"],
            &["410 gone"],
        ],
        reason: Some(Reason::NetworkPermanent),
        advice: "Search the site for the page under another address; do not make up variants of this one.",
        matches: &[
            ("WebFetch", "Request failed with status code 404"),
            ("webfetch", "Request failed with status code: 410"),
        ],
        misses: &[("WebFetch", "Request failed with status code 403")],
    },
    ToolError {
        tools: &[Fetch, WebSearch],
        says: &[
            &["status code 429"],
            &["status code: 429"],
            &["too many requests"],
            &["rate limit"],
            &["rate_limit"],
        ],
        reason: Some(Reason::RateLimited),
        advice: "Do other work first, and fetch less from this site.",
        matches: &[
            ("WebFetch", "Request failed with status code 429"),
            ("WebSearch", "Web search error: too_many_requests, rate limit reached"),
        ],
        misses: &[("WebFetch", "Request failed with status code 503")],
    },
    ToolError {
        tools: &[Fetch],
        says: &[
            &["status code 5"],
            &["status code: 5"],
            &["socket hang up"],
            &["econnreset"],
            &["etimedout"],
            &["timed out"],
            &["timeout"],
            &["econnaborted"],
        ],
        reason: Some(Reason::NetworkTransient),
        advice: "Try again once a little later, or use another source.",
        matches: &[
            ("WebFetch", "Request failed with status code 503"),
            ("WebFetch", "timeout of 60000ms exceeded"),
            ("webfetch", "Request timed out"),
        ],
        misses: &[
            ("WebFetch", "Request failed with status code 404"),
            ("Bash", "timeout of 60000ms exceeded"),
        ],
    },
    ToolError {
        tools: &[Fetch],
        says: &[
            &["enotfound"],
            &["getaddrinfo"],
            &["invalid url"],
            &["certificate"],
            &["must start with http"],
            &["unable to resolve"],
            &["could not resolve"],
        ],
        reason: Some(Reason::NetworkPermanent),
        advice: "Check how the host is spelt, and take the address from a search result or a document, not from memory.",
        matches: &[
            ("WebFetch", "getaddrinfo ENOTFOUND docs.exmaple.com"),
            ("WebFetch", "Invalid URL: docs"),
            ("webfetch", "URL must start with http:// or https://"),
        ],
        misses: &[("WebFetch", "Request failed with status code 404")],
    },
    ToolError {
        tools: &[Fetch],
        says: &[&["content length"], &["maxcontentlength"], &["response too large"], &["content too large"]],
        reason: Some(Reason::InvalidParameters),
        advice: "Fetch a smaller page of that site, or load the file with a command and read the part that you need.",
        matches: &[
            ("WebFetch", "maxContentLength size of 10485760 exceeded"),
            ("webfetch", "Response too large (exceeds 5MB limit)"),
        ],
        misses: &[("WebFetch", "Request failed with status code 404")],
    },
    ToolError {
        tools: &[WebSearch],
        says: &[
            &["max_uses_exceeded"],
            &["maximum number of searches"],
            &["query_too_long"],
            &["invalid_tool_input"],
            &["allowed_domains and blocked_domains"],
            &["both allowed_domains"],
            &["missing query"],
        ],
        reason: Some(Reason::InvalidParameters),
        advice: "Work with what the searches so far have found, or ask one shorter question with one of `allowed_domains` and `blocked_domains`.",
        matches: &[
            ("WebSearch", "Web search error: max_uses_exceeded"),
            (
                "WebSearch",
                "Error: Cannot specify both allowed_domains and blocked_domains in the same request",
            ),
        ],
        misses: &[("WebSearch", "Web search error: unavailable")],
    },
    ToolError {
        tools: &[WebSearch],
        says: &[&["unavailable"], &["not available"], &["not supported"], &["not enabled"]],
        reason: None,
        advice: "Go on with what is in the project and in what you know, and say that the web could not be searched.",
        matches: &[
            ("WebSearch", "Web search error: unavailable"),
            ("websearch", "web search is not enabled"),
        ],
        misses: &[("WebSearch", "Web search error: max_uses_exceeded"), ("WebFetch", "unavailable")],
    },
    // Other agents
    ToolError {
        tools: &[Agent],
        says: &[
            &["agent type", "not found"],
            &["unknown agent type"],
            &["unknown agent"],
            &["is not a valid agent type"],
        ],
        reason: Some(Reason::InvalidParameters),
        advice: "Use an agent type from the list in the error, spelt as it is there.",
        matches: &[
            ("Task", "Agent type 'reviewer' not found. Available agents: general-purpose, Explore"),
            ("task", "Unknown agent type: reviewer is not a valid agent type"),
        ],
        misses: &[("Task", "Agent reached its limit of turns")],
    },
    ToolError {
        tools: &[Agent],
        says: &[
            &["usage limit"],
            &["rate limit"],
            &["session limit"],
            &["hour limit"],
            &["weekly limit"],
            &["429"],
            &["overloaded"],
        ],
        reason: None,
        advice: "Start no further agent now: do the work yourself, or stop and say when the limit ends.",
        matches: &[
            ("Task", "Claude AI usage limit reached|1765000000"),
            ("Agent", "API Error: 429 rate limit"),
            ("Task", "5-hour limit reached ∙ resets 3pm"),
        ],
        misses: &[("Task", "Agent type 'x' not found."), ("Bash", "usage limit reached")],
    },
    ToolError {
        tools: &[Agent],
        says: &[
            &["max turns"],
            &["maximum number of turns"],
            &["limit of turns"],
            &["thread limit reached"],
            &["too many", "agents"],
            &["depth limit"],
            &["maximum depth"],
            &["cannot be used by subagents"],
        ],
        reason: Some(Reason::BudgetExhausted),
        advice: "Look at what the agent has left behind, and give a smaller piece of the rest to one agent at a time.",
        matches: &[
            ("Task", "Agent stopped: reached the limit of turns"),
            ("spawn_agent", "agent thread limit reached (max 6)"),
        ],
        misses: &[("Task", "Agent type 'x' not found.")],
    },
    ToolError {
        tools: &[Agent],
        says: &[&["prompt is too long"], &["context", "exceeded"], &["context window"]],
        reason: Some(Reason::ContextOverflow),
        advice: "Give the agent a shorter task with the names of the files to read, not their content.",
        matches: &[("Task", "API Error: 400 prompt is too long: 210000 tokens > 200000 maximum")],
        misses: &[("Task", "Agent type 'x' not found.")],
    },
    // What every tool says about its own parameters
    ToolError {
        tools: &[Read, Edit, Write, Notebook, Shell, Search, Fetch, WebSearch, Agent],
        says: &[
            &["inputvalidationerror"],
            &["required parameter", "missing"],
            &["unexpected parameter"],
            &["called with invalid arguments"],
            &["failed to parse function arguments"],
            &["the parameter", "type is expected as"],
        ],
        reason: Some(Reason::InvalidParameters),
        advice: "Read the tool's description, and give every required parameter in its type and under its name.",
        matches: &[
            (
                "Read",
                "InputValidationError: Read failed due to the following issue:\nThe required parameter `file_path` is missing",
            ),
            ("edit", "The edit tool was called with invalid arguments: [...]"),
            ("shell", "failed to parse function arguments: missing field `command` at line 1 column 2"),
        ],
        misses: &[("Read", "File does not exist."), ("mcp__x__y", "InputValidationError: y failed")],
    },
];
