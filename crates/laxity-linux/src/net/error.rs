//! Why an interface could not be opened, told apart by what mends it.

use std::fmt;
use std::io;

use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

/// An interface cannot be opened as it was asked for.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{interface}: {cause}; remedy: {}", cause.remedy())]
pub struct OpenError {
    /// As it was named.
    pub interface: String,
    /// The one cause.
    pub cause: OpenCause,
}

/// What stands against opening an interface.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OpenCause {
    /// The name says no interface: why.
    Name(String),
    /// There is none of this name in this network namespace.
    Missing,
    /// It carries no Ethernet.
    NoEthernet,
    /// `CAP_NET_RAW` is missing, which the socket takes.
    NoRawSockets,
    /// `CAP_BPF` or `CAP_NET_ADMIN` is missing, which this step takes: the map, the program, its attachment.
    NoPrograms(&'static str),
    /// `CAP_NET_ADMIN` is missing, which making a TAP or TUN interface takes, and there is none of this name that belongs to the user.
    NoInterfaceRights,
    /// `/dev/net/tun` is not there.
    NoTunDevice,
    /// `/dev/net/tun` may not be opened.
    TunDeviceClosed,
    /// The name is that of an interface which somebody else has open, or which is of another kind.
    NameTaken,
    /// The kernel knows no such sockets.
    NoSupport(&'static str),
    /// Another socket has the queue of this number, and did not give it up.
    QueueTaken(u32),
    /// The interface has another XDP program.
    ProgramAttached,
    /// Packets of so many bytes are longer than is possible this way.
    MtuTooLarge(usize),
    /// The driver of the interface runs no XDP programs itself.
    NoNative,
    /// `RLIMIT_MEMLOCK` leaves too little memory: so many bytes are needed.
    MemoryLocked(usize),
    /// There is no such memory: so many bytes.
    NoMemory(usize),
    /// Another socket has the local address, or it is none of this machine.
    AddressTaken,
    /// What it sends goes by no class.
    NoClass,
    /// `CAP_NET_ADMIN` or `CAP_NET_RAW` is missing, one of which it takes to send by a class.
    NoClassRight,
    /// The kernel's verifier refuses the program: its last words.
    Program(String),
    /// What no cause that can be told explains: the call, and what it said.
    System(&'static str, Errno),
}

impl OpenCause {
    /// A command or a setting that mends it.
    pub fn remedy(&self) -> String {
        let text = match self {
            Self::Name(_) => {
                "name it `auto:NAME`, `xdp:NAME`, `xdp-native:NAME`, `packet:NAME`, `tap:NAME`, `tun:NAME`, or `udp:LOCAL-REMOTE` with an address and a port each"
            }
            Self::Missing => {
                "`ip link` lists the interfaces of this namespace; `ip netns exec NAMESPACE` runs a command in another"
            }
            Self::NoEthernet => {
                "name an interface that `ip link` shows with `link/ether`; a TUN interface of yours is `tun:NAME`"
            }
            Self::NoRawSockets => {
                "run as root, or `sudo setcap cap_net_raw+ep PROGRAM`; `udp:` needs no rights"
            }
            Self::NoPrograms(_) => {
                "run as root of the first user namespace, or `sudo setcap cap_bpf,cap_net_admin,cap_net_raw+ep PROGRAM`; `packet:` needs CAP_NET_RAW only"
            }
            Self::NoInterfaceRights => {
                "as root `ip tuntap add NAME mode tap user $USER && ip link set NAME up` (of `tun:`, `mode tun`), or `sudo setcap cap_net_admin+ep PROGRAM`"
            }
            Self::NoTunDevice => {
                "as root `modprobe tun`, or `mkdir -p /dev/net && mknod /dev/net/tun c 10 200`; in a container let it have the device"
            }
            Self::TunDeviceClosed => "as root `chmod a+rw /dev/net/tun`",
            Self::NameTaken => {
                "`ip -d link show NAME` tells what it is, `lsof /dev/net/tun` who has one; take another name"
            }
            Self::NoSupport(_) => {
                "use another way (`packet:`, `tap:`, `udp:`), or a kernel built with CONFIG_XDP_SOCKETS and CONFIG_PACKET"
            }
            Self::QueueTaken(_) => {
                "end whoever has it (`ss --xdp -p` lists them), or use `packet:`, which shares"
            }
            Self::ProgramAttached => {
                "`ip link show NAME` names it, `ip link set NAME xdp off` or the end of its owner takes it away; `packet:` does without"
            }
            Self::MtuTooLarge(_) => {
                "as root `ip link set NAME mtu 1500`, of both ends if it is a veth; or `packet:`, which takes any"
            }
            Self::NoNative => "use `xdp:`, which needs nothing of the driver",
            Self::MemoryLocked(bytes) => return memory_remedy(*bytes),
            Self::NoMemory(_) => "ask for fewer packets",
            Self::AddressTaken => "`ss -uap` lists who has it; take another port",
            Self::NoClass => {
                "use `packet:` or `udp:`; or open it without a class, and own nothing: what it sends is ahead of all queues by itself"
            }
            Self::NoClassRight => {
                "run as root, or `sudo setcap cap_net_raw+ep PROGRAM`; or open it without a class"
            }
            Self::Program(_) => "use `packet:`, and report the verifier's words with `uname -r`",
            Self::System(..) => {
                "look at the kernel's log (`dmesg`), and at a filter of system calls in a container"
            }
        };
        text.to_owned()
    }

    /// The cause that a socket of this kind was refused for.
    pub(super) fn of_socket(kind: &'static str, errno: Errno) -> Self {
        match errno {
            Errno::PERM | Errno::ACCESS => Self::NoRawSockets,
            Errno::AFNOSUPPORT | Errno::PROTONOSUPPORT | Errno::SOCKTNOSUPPORT => {
                Self::NoSupport(kind)
            }
            errno => Self::System("socket", errno),
        }
    }

    /// The cause that a call of `bpf` was refused for, at this step.
    pub(super) fn of_bpf(step: &'static str, errno: Errno) -> Self {
        match errno {
            Errno::PERM | Errno::ACCESS => Self::NoPrograms(step),
            Errno::NOSYS => Self::NoSupport("bpf"),
            errno => Self::System(step, errno),
        }
    }

    /// Of an interface that was named so.
    pub(super) fn of(self, interface: impl Into<String>) -> OpenError {
        OpenError {
            interface: interface.into(),
            cause: self,
        }
    }
}

fn memory_remedy(bytes: usize) -> String {
    let limit = getrlimit(Resource::Memlock).current;
    let limit = limit.map_or_else(String::new, |limit| {
        format!(", of which RLIMIT_MEMLOCK leaves {} KiB now", limit / 1024)
    });
    format!(
        "`ulimit -l unlimited` as root, or `sudo setcap cap_ipc_lock+ep PROGRAM`, or ask for fewer packets: {} KiB are needed{limit}",
        bytes.div_ceil(1024)
    )
}

impl fmt::Display for OpenCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(why) => write!(f, "no interface is named so: {why}"),
            Self::Missing => f.write_str("there is no such interface in this network namespace"),
            Self::NoEthernet => f.write_str("it carries no Ethernet"),
            Self::NoRawSockets => f.write_str("no such socket may be opened without CAP_NET_RAW"),
            Self::NoPrograms(step) => write!(
                f,
                "no XDP program may be had without CAP_BPF and CAP_NET_ADMIN of the first user namespace: the {step} was refused"
            ),
            Self::NoInterfaceRights => {
                f.write_str("without CAP_NET_ADMIN no TAP or TUN interface may be made, and only one that was made for this user opened")
            }
            Self::NoTunDevice => f.write_str("there is no /dev/net/tun"),
            Self::TunDeviceClosed => f.write_str("/dev/net/tun may not be opened"),
            Self::NameTaken => {
                f.write_str("somebody else has an interface of this name, or it is of another kind")
            }
            Self::NoSupport(what) => write!(f, "this kernel has no {what}"),
            Self::QueueTaken(queue) => write!(f, "another socket has its queue {queue}"),
            Self::ProgramAttached => f.write_str("it has another XDP program"),
            Self::MtuTooLarge(mtu) => write!(f, "its MTU of {mtu} is too large for this way"),
            Self::NoNative => f.write_str("its driver runs no XDP programs"),
            Self::MemoryLocked(_) => f.write_str("too little memory may be locked"),
            Self::NoMemory(bytes) => write!(f, "there are no {bytes} bytes of memory for it"),
            Self::AddressTaken => {
                f.write_str("its own address is taken, or is none of this machine")
            }
            Self::NoClass => f.write_str("what it sends goes past the classes of an owned link"),
            Self::NoClassRight => f.write_str(
                "without CAP_NET_RAW or CAP_NET_ADMIN nothing may be sent by a class of an owned link",
            ),
            Self::Program(words) => write!(f, "this kernel refuses the XDP program: {words}"),
            Self::System(call, errno) => {
                write!(f, "{call}: {}", io::Error::from(*errno))
            }
        }
    }
}
