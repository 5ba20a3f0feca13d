//! What the databases of a user have in common: opening, checking, the clock and the redactor.

/// Defines the type of a user's database with this name, file and format.
macro_rules! shared_store {
    ($(#[$doc:meta])* $name:ident, $file:ident, $format:path) => {
        $(#[$doc])*
        pub struct $name {
            db: $crate::db::Db,
            clock: $crate::Clock,
            boot_clock: $crate::BootClock,
            redactor: std::sync::Arc<backstop_core::Redactor>,
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($name)).field("file", &self.db.file()).finish_non_exhaustive()
            }
        }

        impl $name {
            /// Opens the database; creates it if it is missing.
            pub fn open(folder: &$crate::StateFolder) -> Result<Self, $crate::StoreError> {
                let db = $crate::db::Db::open(folder, folder.$file(), &$format, &|_| Ok(()))?;
                Ok(Self::of(folder, db))
            }

            /// Opens the database if it exists.
            pub fn open_existing(folder: &$crate::StateFolder) -> Result<Option<Self>, $crate::StoreError> {
                let db = $crate::db::Db::open_existing(folder, folder.$file(), &$format, &|_| Ok(()))?;
                Ok(db.map(|db| Self::of(folder, db)))
            }

            fn of(folder: &$crate::StateFolder, db: $crate::db::Db) -> Self {
                let (clock, boot_clock) = (folder.clock.clone(), folder.boot_clock.clone());
                Self { db, clock, boot_clock, redactor: std::sync::Arc::clone(&folder.redactor) }
            }

            /// The path of the database.
            pub fn file(&self) -> &std::path::Path {
                self.db.file()
            }

            /// Reads the whole database and reports damage.
            pub fn check(&self) -> Result<(), $crate::StoreError> {
                self.db.check()
            }

            /// One look at the folder's clocks.
            pub fn reading(&self) -> backstop_core::ClockReading {
                $crate::StateFolder::reading(&self.clock, &self.boot_clock)
            }

            /// The time, from the folder's clock.
            pub fn now(&self) -> backstop_core::Timestamp {
                (self.clock)()
            }
        }
    };
}

pub(crate) use shared_store;
