//! The files that make a machine go on with interrupted runs by itself: a timer of systemd's user
//! manager, or an agent of launchd. Pure: text in, text out.

use std::path::{Path, PathBuf};

/// Who starts programs at login and at times on this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServiceManager {
    /// systemd's user manager.
    Systemd,
    /// launchd.
    Launchd,
}

/// The label of the agent of launchd.
const LABEL: &str = "dev.backstop.resume";
/// The name of the units of systemd.
const UNIT: &str = "backstop-resume";
/// How often it is looked for interrupted runs, in seconds.
const EVERY_SECONDS: u32 = 300;

impl ServiceManager {
    /// The one of this system.
    pub fn here() -> Self {
        if cfg!(target_os = "macos") { Self::Launchd } else { Self::Systemd }
    }

    /// The command that makes the written files take effect now; from the next login on, launchd
    /// does so by itself.
    pub fn enable(self, home: &Path) -> String {
        match self {
            Self::Systemd => {
                format!("systemctl --user daemon-reload && systemctl --user enable --now {UNIT}.timer")
            }
            Self::Launchd => format!("launchctl load -w {}", agent_file(home).display()),
        }
    }

    /// The command that ends what the files have started.
    pub fn disable(self, home: &Path) -> String {
        match self {
            Self::Systemd => format!("systemctl --user disable --now {UNIT}.timer"),
            Self::Launchd => format!("launchctl unload -w {}", agent_file(home).display()),
        }
    }
}

fn agent_file(home: &Path) -> PathBuf {
    home.join("Library/LaunchAgents").join(format!("{LABEL}.plist"))
}

/// The files, with their texts. `config` is the user's folder of settings, `program` our own
/// program, `environment` what it needs of the surroundings of the shell: where agents are found
/// and, where that is not the usual place, the folder of its state.
pub fn service_files(
    manager: ServiceManager,
    home: &Path,
    config: &Path,
    program: &Path,
    environment: &[(&str, &str)],
) -> Vec<(PathBuf, String)> {
    match manager {
        ServiceManager::Systemd => {
            let folder = config.join("systemd/user");
            let service = format!(
                "# Made by `backstop init --service`; `backstop init --service --remove` takes it away.\n\
                 [Unit]\nDescription=Go on with plans that were interrupted\n\n\
                 [Service]\nType=oneshot\n# What it starts lives on.\nKillMode=process\n\
                 {}ExecStart={} run --resume-all\n",
                environment
                    .iter()
                    .map(|(name, value)| format!("Environment=\"{name}={}\"\n", systemd_text(value)))
                    .collect::<String>(),
                systemd_word(&program.to_string_lossy())
            );
            let timer = format!(
                "# Made by `backstop init --service`; `backstop init --service --remove` takes it away.\n\
                 [Unit]\nDescription=Look for plans that were interrupted\n\n\
                 [Timer]\nOnStartupSec=60\nOnUnitInactiveSec={EVERY_SECONDS}\n\n\
                 [Install]\nWantedBy=timers.target\n"
            );
            vec![
                (folder.join(format!("{UNIT}.service")), service),
                (folder.join(format!("{UNIT}.timer")), timer),
            ]
        }
        ServiceManager::Launchd => {
            let plist = format!(
                "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
                 <!-- Made by `backstop init --service`; `backstop init --service --remove` takes it away. -->\n\
                 <!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" \"http://www.apple.com/DTDs/PropertyList-1.0.dtd\">\n\
                 <plist version=\"1.0\">\n<dict>\n\
                 \t<key>Label</key>\n\t<string>{LABEL}</string>\n\
                 \t<key>ProgramArguments</key>\n\t<array>\n\t\t<string>{}</string>\n\t\t<string>run</string>\n\t\t<string>--resume-all</string>\n\t</array>\n\
                 \t<key>EnvironmentVariables</key>\n\t<dict>\n{}\t</dict>\n\
                 \t<key>RunAtLoad</key>\n\t<true/>\n\
                 \t<key>StartInterval</key>\n\t<integer>{EVERY_SECONDS}</integer>\n\
                 \t<key>AbandonProcessGroup</key>\n\t<true/>\n</dict>\n</plist>\n",
                xml(&program.to_string_lossy()),
                environment
                    .iter()
                    .map(|(name, value)| {
                        format!("\t\t<key>{name}</key>\n\t\t<string>{}</string>\n", xml(value))
                    })
                    .collect::<String>()
            );
            vec![(agent_file(home), plist)]
        }
    }
}

/// Text inside quotes of a unit file.
fn systemd_text(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%").replace(['\n', '\r'], " ")
}

/// A word of a command line in a unit file.
fn systemd_word(text: &str) -> String {
    format!("\"{}\"", systemd_text(text).replace('$', "$$"))
}

fn xml(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_in_a_path_has_no_meaning_in_the_files() {
        let (home, program) = (Path::new("/home/u"), Path::new("/opt/a b/100%/$x/<backstop>\""));
        let environment = &[("PATH", "/bin:/a b"), ("BACKSTOP_STATE_DIR", "/data/50%/<state>")];
        let files =
            |manager| service_files(manager, home, Path::new("/home/u/.config"), program, environment);
        let systemd = files(ServiceManager::Systemd);
        assert_eq!(systemd[0].0, Path::new("/home/u/.config/systemd/user/backstop-resume.service"));
        let exec = r#"ExecStart="/opt/a b/100%%/$$x/<backstop>\"" run --resume-all"#;
        assert!(systemd[0].1.contains(exec), "{}", systemd[0].1);
        assert!(systemd[0].1.contains("Environment=\"PATH=/bin:/a b\"\n"));
        assert!(systemd[0].1.contains("Environment=\"BACKSTOP_STATE_DIR=/data/50%%/<state>\"\n"));
        assert!(systemd[1].1.contains("OnUnitInactiveSec=300\n"));
        let launchd = files(ServiceManager::Launchd);
        assert!(launchd[0].1.contains("<string>/opt/a b/100%/$x/&lt;backstop&gt;\"</string>"));
        let state = "<key>BACKSTOP_STATE_DIR</key>\n\t\t<string>/data/50%/&lt;state&gt;</string>\n";
        assert!(launchd[0].1.contains(state), "{}", launchd[0].1);
        assert!(launchd[0].0.ends_with("Library/LaunchAgents/dev.backstop.resume.plist"));
    }
}
