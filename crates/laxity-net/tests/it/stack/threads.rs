//! The same sockets where each has a thread, and blocks.

use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, LazyLock};
use std::thread;

use laxity_model::nif::frames::Frames;
use laxity_model::{Instant, Span};
use laxity_net::buffers::Sleeper;
use laxity_net::driver::{Driver, Host, Limits};
use laxity_net::emulated::{End, Faults, Wire};
use laxity_net::sockets::{TcpListener, TcpStream};
use laxity_net::stack::{Config, Stack};

use super::{address, config};

static BEGAN: LazyLock<std::time::Instant> = LazyLock::new(std::time::Instant::now);

fn now() -> Instant {
    Instant::from_micros(BEGAN.elapsed().as_micros() as u64)
}

type Memory = Box<[u8]>;

/// A stack whose driver is polled by a thread, and itself by another, until `ends`.
fn serve(
    end: End,
    config: Config,
    ends: &Arc<AtomicBool>,
) -> (Stack<Memory>, [thread::JoinHandle<()>; 2]) {
    let sleeper = Sleeper::portable(now);
    let host = Host {
        sleeper: sleeper.clone(),
        ..Host::default()
    };
    let mut driver = Driver::new(end, Frames::new(None, 1), Limits::default(), host).unwrap();
    let stack = Stack::new(&mut driver, config, sleeper, Arc::new(now)).unwrap();
    let [stops, ended] = [(); 2].map(|()| Arc::clone(ends));
    let drives = thread::spawn(move || {
        while !stops.load(SeqCst) {
            driver.poll(now(), &mut ()).unwrap();
            thread::yield_now();
        }
    });
    let served = stack.clone();
    let serves = thread::spawn(move || served.serve(|| ended.load(SeqCst)));
    (stack, [drives, serves])
}

#[test]
fn threads_that_block_are_woken_by_what_they_wait_for_or_when_their_time_is_up() {
    let ends = Arc::new(AtomicBool::new(false));
    let (_wire, near, far) = Wire::new(Faults::default(), 7);
    let (near, near_threads) = serve(near, config(1), &ends);
    let (far, far_threads) = serve(far, config(2), &ends);
    let listener = TcpListener::bind(&far, 7, 4).unwrap();
    let echoes = thread::spawn(move || {
        let mut peer = listener.accept(None).unwrap();
        let mut bytes = Vec::new();
        peer.read_to_end(&mut bytes).unwrap();
        peer.write_all(&bytes).unwrap();
    });
    let mut stream = TcpStream::connect(&near, SocketAddr::new(address(2), 7)).unwrap();
    stream.set_read_timeout(Some(Span::from_millis(1)));
    let early = stream.read(&mut [0; 1]).unwrap_err();
    assert_eq!(early.kind(), ErrorKind::TimedOut);
    stream.set_read_timeout(None);
    // No more than the echo can hold in its hands while this end only writes.
    let sent: Vec<u8> = (0..200_000_u32).map(|at| (at / 7) as u8).collect();
    stream.write_all(&sent).unwrap();
    stream.shutdown(std::net::Shutdown::Write);
    let mut heard = Vec::new();
    stream.read_to_end(&mut heard).unwrap();
    assert!(heard == sent);
    echoes.join().unwrap();
    let refused = TcpStream::connect(&near, SocketAddr::new(address(2), 99)).map(drop);
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::ConnectionRefused);
    ends.store(true, SeqCst);
    for thread in near_threads.into_iter().chain(far_threads) {
        thread.join().unwrap();
    }
}

/// The frames arrive, and nobody takes them.
#[test]
fn who_does_not_answer_is_not_one_who_refuses() {
    let ends = Arc::new(AtomicBool::new(false));
    let (_wire, near, _far) = Wire::new(Faults::default(), 7);
    let impatient = Config {
        patience: Span::from_millis(100),
        ..config(1)
    };
    let (near, threads) = serve(near, impatient, &ends);
    let silent = TcpStream::connect(&near, SocketAddr::new(address(9), 7)).map(drop);
    assert_eq!(silent.unwrap_err().kind(), ErrorKind::TimedOut);
    ends.store(true, SeqCst);
    threads
        .into_iter()
        .for_each(|thread| thread.join().unwrap());
}
