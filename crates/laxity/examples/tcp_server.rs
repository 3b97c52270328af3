//! A server of TCP with an address of its own on an interface: `tcp_server tap:lax0 10.0.0.2/24 7` sends back whatever comes to port 7, for five seconds.
//!
//! Each connection is a client of the interface by itself, with its own buffers, and is worked on by the thread that has it. To ask it: `ip addr add 10.0.0.1/24 dev lax0; ip link set lax0 up; nc 10.0.0.2 7`.

use std::io::{self, Read as _, Write as _};
use std::process::ExitCode;
use std::thread;

use laxity::net::sockets::{TcpListener, TcpStream};
use laxity::net::{AnyMemory, Interface, Options, StackConfig};
use laxity::{Span, now};

/// Sends back what comes until there is no more, or the connection fails; counts how many bytes that was.
fn echo(mut stream: TcpStream<AnyMemory>, echoed: &mut usize) -> io::Result<()> {
    let mut bytes = [0; 4_096];
    loop {
        let count = stream.read(&mut bytes)?;
        if count == 0 {
            return Ok(());
        }
        stream.write_all(&bytes[..count])?;
        *echoed += count;
    }
}

/// A kernel at the other end of a pair cuts no segments: these ways take them whole, each in memory of 64 KiB, so that less is posted.
fn options(name: &str) -> Options {
    let mut options = Options::default();
    let ways = ["packet:", "tap:", "tun:"];
    if ways.iter().any(|way| name.starts_with(way)) {
        options.settings.segments = true;
        options.settings.posted = 64;
        options.limits.posted = 64;
    }
    options
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [name, network, port] = arguments.as_slice() else {
        return Err("tcp_server INTERFACE ADDRESS/BITS PORT".into());
    };
    let (address, bits) = network.split_once('/').ok_or("an address with its bits")?;
    let interface = Interface::open(name, options(name))?;
    let host = interface.stack(StackConfig {
        addresses: vec![(address.parse()?, bits.parse()?)],
        ..StackConfig::default()
    })?;
    let listener = TcpListener::bind(&host, port.parse()?, 16)?;
    println!("{} is {}", interface.facts().name, interface.grade());
    let until = now() + Span::from_secs(5);
    let (connections, bytes) = thread::scope(|scope| {
        let mut all = Vec::new();
        while let Some(stream) = listener.accept(Some(until)) {
            all.push(scope.spawn(move || {
                let mut echoed = 0;
                let ended = echo(stream, &mut echoed);
                (echoed, ended)
            }));
        }
        let all = all.into_iter().filter_map(|one| one.join().ok());
        all.fold((0, 0), |(connections, bytes), (echoed, ended)| {
            if let Err(error) = ended {
                eprintln!("a connection failed after {echoed} bytes: {error}");
            }
            (connections + 1, bytes + echoed)
        })
    });
    let too_long = interface.counters()?.losses.too_long;
    if too_long > 0 {
        eprintln!(
            "{too_long} packets were lost, too long for their memory; remedy: `ip link set dev FAR gso_max_segs 1` has a kernel at the other end cut them"
        );
    }
    println!("{connections} connections, {bytes} bytes");
    Ok(())
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tcp_server: {error}");
            ExitCode::FAILURE
        }
    }
}
