//! A server of TCP with an address of its own on an interface: `tcp_server tap:lax0 10.0.0.2/24 7` sends back whatever comes to port 7, for five seconds.
//!
//! Each connection is a client of the interface by itself, with its own buffers, and is worked on by the thread that has it. To ask it: `ip addr add 10.0.0.1/24 dev lax0; ip link set lax0 up; nc 10.0.0.2 7`.

use std::io::{self, Read as _, Write as _};
use std::thread;

use laxity::net::sockets::{TcpListener, TcpStream};
use laxity::net::{AnyMemory, Interface, Options, StackConfig};
use laxity::{Span, now};

/// Sends back what comes until there is no more; how many bytes that was.
fn echo(mut stream: TcpStream<AnyMemory>) -> io::Result<usize> {
    let (mut bytes, mut echoed) = ([0; 4_096], 0);
    loop {
        let count = stream.read(&mut bytes)?;
        if count == 0 {
            return Ok(echoed);
        }
        stream.write_all(&bytes[..count])?;
        echoed += count;
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [name, network, port] = arguments.as_slice() else {
        return Err("tcp_server INTERFACE ADDRESS/BITS PORT".into());
    };
    let (address, bits) = network.split_once('/').ok_or("an address with its bits")?;
    let interface = Interface::open(name, Options::default())?;
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
            all.push(scope.spawn(move || echo(stream)));
        }
        let ended = all.into_iter().map(|one| one.join().unwrap_or(Ok(0)));
        let bytes: Vec<usize> = ended.map(|bytes| bytes.unwrap_or(0)).collect();
        (bytes.len(), bytes.iter().sum::<usize>())
    });
    println!("{connections} connections, {bytes} bytes");
    Ok(())
}
