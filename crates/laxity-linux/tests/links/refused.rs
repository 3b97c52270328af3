//! What stands against opening an interface: each induced, and told from the others.
#![allow(unsafe_code, reason = "breaking things takes system calls")]

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::process::Command;

use laxity_linux::net::xdp::Mode;
use laxity_linux::net::{
    InterfaceName, OpenCause, PacketLink, Settings, TapLink, UdpLink, XdpLink, open,
};
use laxity_linux::os::clock;
use laxity_model::nif::link::Link;
use libtest_mimic::Trial;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};

use super::in_namespace;
use super::live::free_addresses;
use super::namespace::{ip, pair};

/// Takes capabilities from this thread, which is the test's own.
pub(crate) fn without(capability: CapabilitySet) {
    let mut sets = capabilities(None).unwrap();
    sets.effective.remove(capability);
    sets.permitted.remove(capability);
    set_capabilities(None, sets).unwrap();
}

fn xdp(name: &str, mode: Mode) -> Result<XdpLink, OpenCause> {
    XdpLink::open(name, mode, &Settings::default()).map_err(|error| error.cause)
}

fn packet(name: &str) -> Result<PacketLink, OpenCause> {
    PacketLink::open(name, &Settings::default()).map_err(|error| error.cause)
}

fn tap(name: &str) -> Result<TapLink, OpenCause> {
    TapLink::open(name, &Settings::default()).map_err(|error| error.cause)
}

fn what_is_not_there() {
    assert_eq!(packet("nobody").err(), Some(OpenCause::Missing));
    assert_eq!(packet("lo").err(), Some(OpenCause::NoEthernet));
    for name in ["nobody", "lo"] {
        let refused = xdp(name, Mode::Generic).err();
        assert_eq!(refused, packet(name).err());
    }
    assert_eq!(tap("sixteen-bytes-xx").err(), Some(OpenCause::Missing));
}

fn no_raw_sockets() {
    pair("near", "far");
    without(CapabilitySet::NET_RAW);
    assert_eq!(packet("near").err(), Some(OpenCause::NoRawSockets));
    assert_eq!(
        xdp("near", Mode::Generic).err(),
        Some(OpenCause::NoRawSockets)
    );
    // The remedy is said with it.
    let said = PacketLink::open("near", &Settings::default())
        .unwrap_err()
        .to_string();
    assert!(
        said.starts_with("packet:near: ") && said.contains("setcap cap_net_raw+ep"),
        "{said}"
    );
    // UDP needs no right.
    let [local, remote] = free_addresses();
    assert!(UdpLink::open(local, remote, &Settings::default()).is_ok());
}

fn no_programs() {
    pair("near", "far");
    without(CapabilitySet::BPF | CapabilitySet::SYS_ADMIN | CapabilitySet::NET_ADMIN);
    let refused = xdp("near", Mode::Generic).err();
    assert_eq!(refused, Some(OpenCause::NoPrograms("map")));
    assert!(packet("near").is_ok());
    // `auto` takes what there is, and says what is lost.
    let automatic: InterfaceName = "near".parse().unwrap();
    let opened = open(&automatic, &Settings::default()).unwrap();
    assert_eq!(opened.link.facts().name, "packet:near");
    let lost = opened.lost.unwrap();
    assert!(
        lost.contains("the kernel receives") && lost.contains("CAP_BPF"),
        "{lost}"
    );
    assert_eq!(tap("lax0").err(), Some(OpenCause::NoInterfaceRights));
}

fn too_little_memory_may_be_locked() {
    pair("near", "far");
    without(CapabilitySet::IPC_LOCK);
    let limit = getrlimit(Resource::Memlock);
    let current = Some(64 << 10);
    setrlimit(Resource::Memlock, Rlimit { current, ..limit }).unwrap();
    let refused = xdp("near", Mode::Generic).err();
    setrlimit(Resource::Memlock, limit).unwrap();
    assert_eq!(refused, Some(OpenCause::MemoryLocked(1_024 * 2_048)));
}

fn the_queue_is_taken() {
    pair("near", "far");
    let first = xdp("near", Mode::Generic).unwrap();
    assert_eq!(
        xdp("near", Mode::Generic).err(),
        Some(OpenCause::QueueTaken(0))
    );
    drop(first);
    // Once it is closed, it can be had, however long the kernel takes.
    assert!(xdp("near", Mode::Generic).is_ok());
}

/// A program that lets everything pass, at this interface's hook.
fn strangers_program(interface: &str) -> [OwnedFd; 2] {
    fn bpf(command: i32, attributes: &[u64]) -> OwnedFd {
        let (place, size) = (attributes.as_ptr(), size_of_val(attributes));
        // SAFETY: the attributes are the command's, so long, and addresses in them are valid.
        let number = unsafe { libc::syscall(libc::SYS_bpf, command, place, size) };
        assert!(number >= 0, "{}", std::io::Error::last_os_error());
        // SAFETY: the kernel opened it just now.
        unsafe { OwnedFd::from_raw_fd(number as i32) }
    }
    // r0 = 2; exit
    let code: [u64; 2] = [0x2_0000_00b7, 0x95];
    let program = bpf(
        5,
        &[6 | 2 << 32, code.as_ptr() as u64, c"MIT".as_ptr() as u64, 0],
    );
    let name = std::ffi::CString::new(interface).unwrap();
    // SAFETY: it reads the name, which outlives the call.
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
    let attached = bpf(
        28,
        &[
            program.as_raw_fd() as u64 | u64::from(index) << 32,
            37 | 2 << 32,
        ],
    );
    [program, attached]
}

fn another_program_is_attached() {
    pair("near", "far");
    let held = strangers_program("near");
    let refused = xdp("near", Mode::Generic).err();
    assert_eq!(refused, Some(OpenCause::ProgramAttached));
    assert_eq!(
        xdp("near", Mode::Native).err(),
        Some(OpenCause::ProgramAttached)
    );
    drop(held);
    assert!(xdp("near", Mode::Generic).is_ok());
}

fn packets_are_too_long() {
    pair("near", "far");
    let mtu = |mtu: u32| {
        let set = |name| ip(&format!("link set {name} mtu {mtu}"));
        assert!(set("near") && set("far"));
    };
    mtu(3_700);
    let refused = xdp("near", Mode::Native).err();
    assert_eq!(refused, Some(OpenCause::MtuTooLarge(3_700)));
    assert!(xdp("near", Mode::Generic).is_ok());
    mtu(9_000);
    let refused = xdp("near", Mode::Generic).err();
    assert_eq!(refused, Some(OpenCause::MtuTooLarge(9_000)));
    assert_eq!(packet("near").unwrap().facts().mtu, 9_000);
}

fn a_driver_without_programs() {
    assert!(ip("link add near type bridge"));
    assert_eq!(xdp("near", Mode::Native).err(), Some(OpenCause::NoNative));
}

fn the_name_is_taken() {
    pair("near", "far");
    assert_eq!(tap("near").err(), Some(OpenCause::NameTaken));
    let tun = TapLink::open_tun("lax0", &Settings::default()).unwrap();
    assert_eq!(tap("lax0").err(), Some(OpenCause::NameTaken));
    drop(tun);
    let first = tap("lax0").unwrap();
    assert_eq!(tap("lax0").err(), Some(OpenCause::NameTaken));
    drop(first);
    assert!(tap("lax0").is_ok());
    let [local, remote] = free_addresses();
    let held = UdpLink::open(local, remote, &Settings::default()).unwrap();
    let refused = UdpLink::open(local, remote, &Settings::default());
    assert_eq!(refused.unwrap_err().cause, OpenCause::AddressTaken);
    drop(held);
    let elsewhere = UdpLink::open("192.0.2.1:9".parse().unwrap(), remote, &Settings::default());
    assert_eq!(elsewhere.unwrap_err().cause, OpenCause::AddressTaken);
}

fn the_device_is_not_there_or_closed() {
    // SAFETY: it takes a number, and concerns this thread alone.
    assert_eq!(unsafe { libc::unshare(libc::CLONE_NEWNS) }, 0);
    let run = |words: &str| {
        let mut words = words.split(' ');
        let mut command = Command::new(words.next().unwrap());
        assert!(command.args(words).status().unwrap().success());
    };
    run("mount --make-rprivate /");
    run("mount -t tmpfs none /dev/net");
    assert_eq!(tap("lax0").err(), Some(OpenCause::NoTunDevice));
    run("mknod -m 000 /dev/net/tun c 10 200");
    without(CapabilitySet::DAC_OVERRIDE | CapabilitySet::DAC_READ_SEARCH);
    assert_eq!(tap("lax0").err(), Some(OpenCause::TunDeviceClosed));
}

/// A filter of system calls answers as a kernel does that knows no such sockets.
fn a_kernel_without_such_sockets() {
    pair("near", "far");
    let instruction = |code, k, jt, jf| libc::sock_filter { code, jt, jf, k };
    let refused = libc::SECCOMP_RET_ERRNO | libc::EAFNOSUPPORT as u32;
    let mut code = [
        instruction(0x20, 0, 0, 0),
        instruction(0x15, libc::SYS_socket as u32, 0, 3),
        // The first argument's lower half, little end first.
        instruction(0x20, 16, 0, 0),
        instruction(0x15, libc::AF_XDP as u32, 0, 1),
        instruction(0x06, refused, 0, 0),
        instruction(0x06, libc::SECCOMP_RET_ALLOW, 0, 0),
    ];
    let program = libc::sock_fprog {
        len: code.len() as u16,
        filter: code.as_mut_ptr(),
    };
    // SAFETY: both concern this thread alone; the program outlives the call.
    let filtered = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
            + libc::prctl(
                libc::PR_SET_SECCOMP,
                libc::SECCOMP_MODE_FILTER,
                &raw const program,
            )
    };
    assert_eq!(filtered, 0);
    assert_eq!(
        xdp("near", Mode::Generic).err(),
        Some(OpenCause::NoSupport("AF_XDP"))
    );
    assert!(packet("near").is_ok());
}

/// What carries no Ethernet is had by its own name alone, and carries IP alone, and that is said.
fn auto_takes_no_tun() {
    let mut tun = TapLink::open_tun("lax0", &Settings::default()).unwrap();
    let automatic: InterfaceName = "lax0".parse().unwrap();
    let refused = open(&automatic, &Settings::default()).unwrap_err();
    assert_eq!(refused.cause, OpenCause::NoEthernet);
    assert!(refused.to_string().contains("`tun:NAME`"), "{refused}");
    let nothing = tun.allocate(1).unwrap().remove(0);
    let refused = tun.send(nothing, 60, clock::now()).unwrap_err().1;
    assert!(refused.to_string().contains("carries IP"), "{refused}");
}

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        in_namespace(
            "what_is_not_there_or_no_ethernet_is_refused",
            what_is_not_there,
        ),
        in_namespace("auto_takes_no_tun_and_says_how_to", auto_takes_no_tun),
        in_namespace("without_raw_sockets_only_udp_is_left", no_raw_sockets),
        in_namespace(
            "without_programs_a_packet_socket_is_left_and_said",
            no_programs,
        ),
        in_namespace(
            "memory_that_may_not_be_locked_is_told",
            too_little_memory_may_be_locked,
        ),
        in_namespace(
            "a_queue_that_is_taken_is_told_and_waited_for",
            the_queue_is_taken,
        ),
        in_namespace(
            "another_program_at_the_hook_is_told",
            another_program_is_attached,
        ),
        in_namespace("packets_that_are_too_long_are_told", packets_are_too_long),
        in_namespace(
            "a_driver_that_runs_no_programs_is_told",
            a_driver_without_programs,
        ),
        in_namespace(
            "a_name_or_an_address_that_is_taken_is_told",
            the_name_is_taken,
        ),
        in_namespace(
            "a_device_that_is_not_there_or_closed_is_told",
            the_device_is_not_there_or_closed,
        ),
        in_namespace(
            "a_kernel_without_such_sockets_is_told",
            a_kernel_without_such_sockets,
        ),
    ]
}
