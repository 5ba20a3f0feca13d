//! The lists of tools on disk: in the state folder, where nobody else writes. A view for people is
//! beside the project; it is never read.

use super::{CacheState, ServerListing};
use backstop_core::Name;
use backstop_files::{Durability, Folder, named};
use backstop_runtime::Project;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// The version of the file.
const SCHEMA: u32 = 1;
/// The largest file that is read, in bytes.
const FILE_BYTES_MAX: u64 = 256 << 20;

#[derive(Debug, Deserialize)]
struct Kept {
    schema: u32,
    servers: BTreeMap<Name, ServerListing>,
}

#[derive(Debug, Serialize)]
struct ToKeep<'k> {
    schema: u32,
    servers: BTreeMap<&'k Name, &'k ServerListing>,
}

/// Where the lists are kept.
pub(crate) fn file(project: &Project) -> Option<PathBuf> {
    let name: Name = "tools".parse().ok()?;
    Some(project.folder().ok()?.work_folder(&project.root, &name).ok()?.join("catalogue.json"))
}

/// Reads the lists.
pub(crate) fn load(project: &Project) -> (BTreeMap<Name, ServerListing>, CacheState) {
    let none = BTreeMap::new;
    let Some(path) = file(project) else { return (none(), CacheState::Missing) };
    match std::fs::metadata(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return (none(), CacheState::Missing),
        Err(error) => return (none(), CacheState::Invalid(error.to_string())),
        Ok(found) if found.len() > FILE_BYTES_MAX => {
            return (none(), CacheState::Invalid("it is too large".to_owned()));
        }
        Ok(_) => {}
    }
    let read = std::fs::read(&path).map_err(|error| error.to_string());
    let kept =
        read.and_then(|bytes| serde_json::from_slice::<Kept>(&bytes).map_err(|error| error.to_string()));
    match kept {
        Ok(kept) if kept.schema == SCHEMA => (kept.servers, CacheState::Read),
        Ok(kept) => (none(), CacheState::Invalid(format!("it has version {}, not {SCHEMA}", kept.schema))),
        Err(error) => (none(), CacheState::Invalid(error)),
    }
}

/// Keeps the lists. What another process has kept meanwhile of other servers stays.
pub(crate) fn save(project: &Project, servers: &BTreeMap<Name, Arc<ServerListing>>) -> std::io::Result<()> {
    let Some(path) = file(project) else { return Ok(()) };
    let kept = ToKeep {
        schema: SCHEMA,
        servers: servers.iter().map(|(name, listing)| (name, &**listing)).collect(),
    };
    let bytes = serde_json::to_vec(&kept).map_err(std::io::Error::other)?;
    named::replace(&path, &bytes, Durability::OnDisk)?;
    view(project, servers);
    Ok(())
}

/// Writes the view for people, where the project has a folder for views.
fn view(project: &Project, servers: &BTreeMap<Name, Arc<ServerListing>>) {
    let root = Folder::new(&project.root);
    let views = project.root.join(".backstop");
    if !root.has_folder(&views) {
        return;
    }
    let view: BTreeMap<&Name, serde_json::Value> = servers
        .iter()
        .map(|(name, listing)| (name, json!({ "listed_at": listing.listed_at, "tools": listing.tools })))
        .collect();
    if let Ok(text) = serde_json::to_vec_pretty(&json!({ "schema": SCHEMA, "servers": view })) {
        // A view that cannot be written is no loss.
        let _ = root.replace(&views.join("tools.json"), &text, Durability::Later);
    }
}
