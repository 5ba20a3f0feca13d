//! The lists of tools on disk: in the state folder, where nobody else writes. A view for people is
//! beside the project; it is never read.

use super::{CacheState, ServerListing};
use backstop_core::Name;
use backstop_files::{Durability, Folder};
use backstop_runtime::Project;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The version of the file.
const SCHEMA: u32 = 1;
/// The largest file that is read, in bytes.
const FILE_BYTES_MAX: u64 = 256 << 20;
/// The lists of so many servers are kept, those that are set up no longer included.
const SERVERS_MAX: usize = 256;

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

/// The folder of the file, below which no link is followed and no pipe is waited for.
fn in_folder(path: &Path) -> Folder {
    Folder::new(path.parent().unwrap_or(Path::new("")))
}

/// Reads the lists.
pub(crate) fn load(project: &Project) -> (BTreeMap<Name, ServerListing>, CacheState) {
    let none = BTreeMap::new;
    let Some(path) = file(project) else { return (none(), CacheState::Missing) };
    let read = match in_folder(&path).read(&path, FILE_BYTES_MAX) {
        Ok(None) => return (none(), CacheState::Missing),
        Ok(Some(bytes)) => Ok(bytes),
        Err(error) => Err(error.to_string()),
    };
    let kept =
        read.and_then(|bytes| serde_json::from_slice::<Kept>(&bytes).map_err(|error| error.to_string()));
    match kept {
        Ok(kept) if kept.schema == SCHEMA => (kept.servers, CacheState::Read),
        Ok(kept) => (none(), CacheState::Invalid(format!("it has version {}, not {SCHEMA}", kept.schema))),
        Err(error) => (none(), CacheState::Invalid(error)),
    }
}

/// Keeps the lists. What another process has kept meanwhile of other servers, or later of the same
/// ones, stays.
pub(crate) fn save(project: &Project, servers: &BTreeMap<Name, Arc<ServerListing>>) -> std::io::Result<()> {
    let Some(path) = file(project) else { return Ok(()) };
    let _lock = locked(&path)?;
    let (theirs, _) = load(project);
    let theirs: BTreeMap<Name, Arc<ServerListing>> =
        theirs.into_iter().map(|(name, listing)| (name, Arc::new(listing))).collect();
    let servers = merged(servers, theirs);
    let kept = ToKeep {
        schema: SCHEMA,
        servers: servers.iter().map(|(name, listing)| (name, &**listing)).collect(),
    };
    let bytes = serde_json::to_vec(&kept).map_err(std::io::Error::other)?;
    in_folder(&path).replace(&path, &bytes, Durability::OnDisk)?;
    view(project, &servers);
    Ok(())
}

/// A lock that one process holds while it reads the lists and writes them anew.
fn locked(path: &Path) -> std::io::Result<File> {
    let lock = in_folder(path).open_private(&path.with_extension("lock"))?;
    lock.lock()?;
    Ok(lock)
}

/// Of each server the newer list. Where there are too many, the oldest go.
fn merged(
    ours: &BTreeMap<Name, Arc<ServerListing>>,
    theirs: BTreeMap<Name, Arc<ServerListing>>,
) -> BTreeMap<Name, Arc<ServerListing>> {
    let mut all = theirs;
    for (name, listing) in ours {
        if all.get(name).is_none_or(|other| other.listed_at <= listing.listed_at) {
            all.insert(name.clone(), Arc::clone(listing));
        }
    }
    while all.len() > ours.len().max(SERVERS_MAX) {
        let oldest = all.iter().min_by_key(|(_, listing)| listing.listed_at).map(|(name, _)| name.clone());
        let Some(oldest) = oldest else { break };
        all.remove(&oldest);
    }
    all
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::Listing;
    use crate::protocol::Era;
    use backstop_core::Timestamp;

    fn listing(at: i64) -> Arc<ServerListing> {
        let listing = Listing { tools: Vec::new(), left_out: 0, era: Era::Legacy, hello: json!({}) };
        Arc::new(ServerListing::new("f".into(), listing, None, Timestamp::from_millis(at)))
    }

    #[test]
    fn the_newer_list_of_each_server_is_kept() {
        let map = |all: &[(&str, i64)]| -> BTreeMap<Name, Arc<ServerListing>> {
            all.iter().map(|(name, at)| (name.parse().unwrap(), listing(*at))).collect()
        };
        let got = merged(&map(&[("a", 5), ("b", 5)]), map(&[("b", 9), ("c", 1), ("a", 2)]));
        let times: Vec<_> = got.iter().map(|(name, l)| (name.as_str(), l.listed_at.as_millis())).collect();
        assert_eq!(times, [("a", 5), ("b", 9), ("c", 1)]);
    }
}
