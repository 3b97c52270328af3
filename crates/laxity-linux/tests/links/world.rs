//! Small networks: everybody is reached over whatever lies between, what is in the class goes first, and nothing is left of any, however its maker ends.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::{Ipv4Addr, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use laxity_linux::doctor::rights;
use laxity_linux::host::command::{ProcessGroup, RunningCommand};
use laxity_linux::net::pair::{PairError, enter_user_namespace, may_pair};
use laxity_linux::net::world::{Between, Queues, World};
use libtest_mimic::Trial;
use rustix::process::{Pid, Signal, kill_process};

use super::common::until;

/// By which this program is started as the maker of a network: behind it, where.
const AS_MAKER: &str = "--world";
const IN_USER_NAMESPACE: &str = "user";
/// Of the links.
const RATE: u64 = 100_000_000;
/// So slow that frames wait where they are sent: a full one takes 30 ms.
const SLOW: u64 = 400_000;
const ALL: [Between; 3] = [Between::Wire, Between::Relays(3), Between::Switch];
const PATIENCE: Option<Duration> = Some(Duration::from_secs(10));

/// A socket of a host, at this address of its.
fn socket(world: &World, host: usize, address: Ipv4Addr) -> UdpSocket {
    let socket = world.hosts()[host].within(None, || UdpSocket::bind((address, 0)));
    let socket = socket.unwrap().unwrap();
    socket.set_read_timeout(PATIENCE).unwrap();
    socket
}

/// From the near host to the far one by both its addresses, to each host on the way, and back.
fn everybody_is_reached(world: &World) {
    let near = socket(world, 0, World::address(0));
    let last = world.hosts().len() - 1;
    let others = (1..=last).map(|host| (host, World::address(host as u8)));
    for (host, address) in others.chain([(last, World::IN_CLASS)]) {
        let other = socket(world, host, address);
        near.send_to(b"there", other.local_addr().unwrap()).unwrap();
        let (_, from) = other.recv_from(&mut [0; 8]).unwrap();
        other.send_to(b"back", from).unwrap();
        near.recv(&mut [0; 8]).unwrap();
    }
}

fn reached() {
    for between in ALL {
        for queues in [Queues::Fifo, Queues::Class, Queues::Node] {
            everybody_is_reached(&World::new(between, RATE, queues).unwrap());
        }
    }
}

/// Of two hosts, after so many datagrams of 1,400 bytes that nobody has read: how many arrive before one for this address that is sent last.
fn before_the_last(queues: Queues) -> u8 {
    const OTHERS: u8 = 60;
    let world = World::new(Between::Wire, SLOW, queues).unwrap();
    let near = socket(&world, 0, World::address(0));
    let far = socket(&world, 1, Ipv4Addr::UNSPECIFIED);
    let port = far.local_addr().unwrap().port();
    let mut received = [0; 2_048];
    // Their kernels have to ask for each other's address first.
    near.send_to(&[0], (World::address(1), port)).unwrap();
    far.recv(&mut received).unwrap();
    for _ in 0..OTHERS {
        near.send_to(&[1; 1_400], (World::address(1), port))
            .unwrap();
    }
    near.send_to(&[2; 64], (World::IN_CLASS, port)).unwrap();
    let mut before = 0;
    loop {
        far.recv(&mut received).unwrap();
        match received[0] {
            2 => return before,
            _ => before += 1,
        }
    }
}

fn first_in_class() {
    // There they all go before it.
    assert_eq!(before_the_last(Queues::Fifo), 60);
    // It waits for what left before it was offered, and for what is on its way.
    let before = before_the_last(Queues::Class);
    assert!(before < 30, "{before} went before it");
}

fn missing_queue() {
    // Few kernels are without it.
    match World::new(Between::Wire, RATE, Queues::Fair) {
        Ok(world) => everybody_is_reached(&world),
        Err(PairError::Refused(asked, _)) => assert!(asked.ends_with("fq"), "{asked}"),
        Err(why) => panic!("{why}"),
    }
}

/// Makes one, if this process was started for that, starts a program in it, and tells where each is; and waits to be ended.
pub(crate) fn make_and_wait() {
    let mut arguments = std::env::args().skip_while(|argument| argument != AS_MAKER);
    let Some(place) = arguments.nth(1) else {
        return;
    };
    if place == IN_USER_NAMESPACE
        && let Err(why) = enter_user_namespace()
    {
        println!("{why}");
        std::process::exit(0);
    }
    let world = World::new(Between::Relays(1), RATE, Queues::Class).unwrap();
    everybody_is_reached(&world);
    let far = &world.hosts()[2];
    let start = || {
        let mut sleep = Command::new("sleep");
        sleep.arg("1000").stdout(Stdio::null());
        RunningCommand::start(sleep, ProcessGroup::Own, |_| Ok(()))
    };
    let started = far.within(None, start).unwrap().unwrap();
    let names = world.hosts().iter().map(|host| {
        let name = host.within(None, || fs::read_link("/proc/thread-self/ns/net"));
        name.unwrap().unwrap().display().to_string()
    });
    let names: Vec<String> = names.collect();
    println!("made {} {}", started.id().0, names.join(" "));
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
    std::process::exit(0);
}

/// A process that makes one; killed and reaped with this.
struct Maker(Child);

impl Maker {
    /// What it says: the program that it started, and its namespaces.
    fn start(place: &str) -> (Self, String) {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args([AS_MAKER, place]);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut told = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        told.read_line(&mut line).unwrap();
        (Self(child), line.trim().to_owned())
    }
}

impl Drop for Maker {
    fn drop(&mut self) {
        // One that has ended already is what is wanted.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Whether any process is in one of these namespaces, or holds one open.
fn somebody_has(namespaces: &[&str]) -> bool {
    let has = |link: &std::path::Path| {
        let target = fs::read_link(link).ok();
        target.is_some_and(|target| namespaces.iter().any(|one| target.as_os_str() == *one))
    };
    let processes = fs::read_dir("/proc").unwrap().flatten();
    processes.into_iter().any(|process| {
        let descriptors = fs::read_dir(process.path().join("fd"));
        let mut descriptors = descriptors.into_iter().flatten().flatten();
        has(&process.path().join("ns/net")) || descriptors.any(|one| has(&one.path()))
    })
}

fn nothing_is_left() {
    for signal in [Signal::INT, Signal::TERM, Signal::KILL] {
        let (maker, said) = Maker::start("here");
        let mut words = said.split(' ').skip(1);
        let started: i32 = words.next().unwrap().parse().unwrap();
        let namespaces: Vec<&str> = words.collect();
        assert!(namespaces.len() == 3 && somebody_has(&namespaces), "{said}");
        let process = Pid::from_raw(maker.0.id() as i32).unwrap();
        kill_process(process, signal).unwrap();
        until("nobody has them", || !somebody_has(&namespaces));
        until("what it started is gone", || {
            fs::metadata(format!("/proc/{started}")).is_err()
        });
    }
}

fn without_root() {
    let (_maker, said) = Maker::start(IN_USER_NAMESPACE);
    match said.starts_with("made ") {
        true => {}
        false => rights::lacks(&said),
    }
}

pub(crate) fn trials() -> Vec<Trial> {
    let tests: [(&str, fn()); 5] = [
        ("everybody_is_reached_over_whatever_lies_between", reached),
        ("what_is_in_the_class_goes_before_all_else", first_in_class),
        (
            "a_queue_that_the_kernel_does_not_have_is_named",
            missing_queue,
        ),
        (
            "nothing_is_left_of_a_network_whose_maker_is_ended",
            nothing_is_left,
        ),
        ("who_is_not_root_makes_one_too", without_root),
    ];
    let trial = |(name, run): (&str, fn())| {
        Trial::test(format!("world::{name}"), move || {
            match may_pair() {
                Ok(()) => run(),
                Err(why) => rights::lacks(&why.to_string()),
            }
            Ok(())
        })
    };
    tests.into_iter().map(trial).collect()
}
