//! A folder for one test, removed with it.

use super::find::Surroundings;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

/// A home folder with a config folder in it.
pub(super) struct Scratch {
    pub(super) home: PathBuf,
}

impl Scratch {
    pub(super) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name =
            format!("backstop-config-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let home = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&home).unwrap();
        Self { home: home.canonicalize().unwrap() }
    }

    /// Writes a file below the home folder.
    pub(super) fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.home.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    /// Makes a folder below the home folder.
    pub(super) fn folder(&self, path: &str) {
        std::fs::create_dir_all(self.home.join(path)).unwrap();
    }

    /// The surroundings in a folder below the home folder, without any variables.
    pub(super) fn around(&self, cwd: &str) -> Surroundings<'static> {
        Surroundings {
            cwd: if cwd.is_empty() { self.home.clone() } else { self.home.join(cwd) },
            home: Some(self.home.clone()),
            xdg_config_home: None,
            env: &|_| None,
            users: vec![self.home.metadata().unwrap().uid()],
            state_root: Some(self.home.join("state")),
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.home);
    }
}
