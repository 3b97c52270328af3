//! Two interfaces in a namespace that nobody else is in.

use laxity_linux::doctor::rights;
use laxity_linux::net::Settings;
use laxity_linux::net::pair::{PairError, pair};
use laxity_linux::os::clock;
use laxity_model::Span;
use laxity_model::nif::link::{Link, Memory};

/// What is sent at one end arrives at the other, and this namespace has no interface more.
pub(crate) fn crosses() {
    let names = || std::fs::read_to_string("/proc/self/net/dev").map(|all| all.lines().count());
    let before = names().ok();
    let [mut near, mut far] = match pair(&Settings::default()) {
        Ok(ends) => ends,
        Err(why @ (PairError::NoNamespace(_) | PairError::NoProgram(..))) => {
            return rights::lacks(&why.to_string());
        }
        Err(why) => panic!("{why}; {}", why.remedy()),
    };
    assert_eq!(names().ok(), before);
    let memory = far.allocate(1).unwrap().remove(0);
    far.post(memory).unwrap_or_else(|_| panic!("it has room"));
    let mut frame = near.allocate(1).unwrap().remove(0);
    frame.bytes_mut()[..14].copy_from_slice(&[0xff; 14]);
    frame.bytes_mut()[14] = 7;
    let sent = near.send(frame, 60, clock::now());
    sent.unwrap_or_else(|(_, why)| panic!("{why}"));
    let until = clock::now() + Span::from_secs(5);
    let arrived = loop {
        assert!(clock::now() < until, "it does not arrive");
        if let Some(arrived) = far.receive(clock::now()).unwrap() {
            break arrived;
        }
        std::thread::yield_now();
    };
    assert_eq!((arrived.length, arrived.memory.bytes()[14]), (60, 7));
}
