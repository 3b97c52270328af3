//! How many files a process may have open at once (`RLIMIT_NOFILE`). Whoever holds a program has up to four open for each of its threads.

use std::io;
use std::sync::OnceLock;

use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// What this process might before it was allowed the most.
static BEFORE: OnceLock<Rlimit> = OnceLock::new();

/// From now on this process may have as many open as it can let itself have: its hard limit. What it starts as a
/// [`RunningCommand`](crate::host::command::RunningCommand) may have as many as this process might before: `select` knows no more than 1,024.
pub fn allow_most() {
    let before = *BEFORE.get_or_init(|| getrlimit(Resource::Nofile));
    let current = before.maximum;
    // Where that is refused, it may have what it might before.
    let _ = setrlimit(Resource::Nofile, Rlimit { current, ..before });
}

/// In a child that is about to execute a program: that may have as many as it would without [`allow_most`]. Two kernel calls at most.
pub(crate) fn as_before() -> rustix::io::Result<()> {
    let limit = |before: &Rlimit| least(before, getrlimit(Resource::Nofile));
    let before = BEFORE.get();
    before.map_or(Ok(()), |before| setrlimit(Resource::Nofile, limit(before)))
}

/// What is so now, with the soft limit from before, as far as that may still be had: somebody may have lowered the hard one meanwhile.
fn least(before: &Rlimit, now: Rlimit) -> Rlimit {
    let current = match (before.current, now.maximum) {
        (Some(before), Some(most)) => Some(before.min(most)),
        (before, most) => before.or(most),
    };
    Rlimit { current, ..now }
}

/// What would help where somebody says, in the C library's words, that this process may open no more files; `None` of all else that may be said.
pub fn remedy(said: &str) -> Option<String> {
    let too_many = io::Error::from(Errno::MFILE).to_string();
    if !said.contains(&too_many) {
        return None;
    }
    let limit = getrlimit(Resource::Nofile).current;
    let more = limit.unwrap_or_default().saturating_mul(4).max(1_024);
    let limit = limit.map_or_else(|| "all".to_owned(), |files| files.to_string());
    Some(format!(
        "only {limit} files may be open at once, of which each thread that is held takes up to four; allow more, as root where that is the hard limit: `ulimit -n {more}`"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::fact::Unknown;

    #[test]
    fn a_soft_limit_is_had_again_under_the_hard_one_that_is_there_now() {
        let limit = |current, maximum| Rlimit { current, maximum };
        let soft = |before, most| {
            let again = least(&limit(before, Some(4_096)), limit(Some(9), most));
            assert_eq!(again.maximum, most);
            again.current
        };
        assert_eq!(soft(Some(1_024), Some(4_096)), Some(1_024));
        assert_eq!(soft(Some(1_024), Some(512)), Some(512));
        assert_eq!(soft(Some(1_024), None), Some(1_024));
        assert_eq!([soft(None, Some(512)), soft(None, None)], [Some(512), None]);
    }

    #[test]
    fn more_than_may_be_open_now_is_advised_where_that_is_what_was_said() {
        let said = |errno: Errno| {
            let path = std::path::Path::new("/proc/7/schedstat");
            Unknown::cannot_read(path, &errno.into()).to_string()
        };
        let remedy_of = |errno| remedy(&format!("it is not held: {}: later", said(errno)));
        assert_eq!(remedy_of(Errno::NOENT), None);
        let told = remedy_of(Errno::MFILE).unwrap();
        let more = told.split_once("`ulimit -n ").unwrap().1;
        let more: u64 = more.trim_end_matches('`').parse().unwrap();
        let limit = getrlimit(Resource::Nofile).current;
        assert!(limit.is_none_or(|limit| more > limit), "{told}");
    }
}
