//! Other users: who is let in.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::thread;

use laxity_linux::doctor::rights;
use laxity_linux::host::coordinator::Settings;
use laxity_model::program::coordinator::{Answer, Ask};
use rustix::io::Errno;
use rustix::thread::{CapabilitySet, Uid, capabilities, set_thread_res_uid};

use crate::{Served, Stranger};

const NOBODY: u32 = 65_534;

/// In a thread that is another user's; `None` where only root could, and the test is skipped.
fn as_nobody<T: Send>(does: impl FnOnce() -> T + Send) -> Option<T> {
    let own = capabilities(None).unwrap().effective;
    if !own.contains(CapabilitySet::SETUID) {
        rights::lacks("only root can become another user");
        return None;
    }
    let nobody = Uid::from_raw(NOBODY);
    Some(thread::scope(|scope| {
        let other = scope.spawn(|| {
            set_thread_res_uid(nobody, nobody, nobody).unwrap();
            does()
        });
        other.join().unwrap()
    }))
}

/// What another user is answered who asks for a seat, if he is let in.
fn seat_of_another(change: fn(&mut Settings)) -> Option<Result<Option<Answer>, Errno>> {
    let served = Served::new(change);
    let client = served.client();
    // So it hangs on the socket alone.
    let permitted = Permissions::from_mode(0o755);
    fs::set_permissions(served.directory.path(), permitted).unwrap();
    let name = "another user's".to_owned();
    let answered = as_nobody(|| {
        let reached = Stranger::reach(&served.directory);
        reached.map(|stranger| stranger.asks(&Ask::Join { name }, &[]))
    });
    served.still_serves(&client);
    drop(client);
    served.thread.join().unwrap();
    answered
}

#[test]
fn another_user_is_let_in_where_that_was_said_and_nowhere_else() {
    let Some(refused) = seat_of_another(|_| ()) else {
        return;
    };
    assert_eq!(refused, Err(Errno::ACCESS));
    let seated = seat_of_another(|settings| settings.everyone = true);
    assert!(
        matches!(seated, Some(Ok(Some(Answer::Welcome { .. })))),
        "{seated:?}"
    );
}
