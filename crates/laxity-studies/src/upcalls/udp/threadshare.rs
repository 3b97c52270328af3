//! A rival that shares threads among streams: the elements of GStreamer's threadshare, of gst-plugins-rs, in two of its programs, which have a context each.
//!
//! Neither has a socket from us, nor says what it has sent: the kernel tells what was dropped on the way to the server's port, and the memory
//! that the server writes into what came.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use laxity::command::Policy;
use laxity::now;
use laxity_lab::bench::Runner;
use laxity_model::HostError;
use rustix::fs::{MemfdFlags, memfd_create};

use super::peer::{Told, Way};
use super::transfer::{self, BATCH, BUFFER, PERIODS, REST, Transfer, Transferred};
use crate::peers::{PRIORITY, Peer, failed, watch};

/// Both ends are served so, or neither.
pub(super) const BOTH: [Way; 2] = [Way::Threadshare, Way::Threadshare];
/// What both ends are made of and GStreamer may not have.
const ELEMENTS: [&str; 3] = ["ts-udpsrc", "ts-udpsink", "rawvideoparse"];
const INSPECT: &str = "gst-inspect-1.0";
/// What it says when it begins.
const BEGINS: &str = "Setting pipeline to PLAYING";
/// A message is a picture that is so wide, one byte a pixel, as pictures are what GStreamer gives a time of its own to each.
const WIDTH: usize = 64;

/// Why it cannot be run here; `None`: it can.
pub(super) fn lacking() -> Option<&'static str> {
    static LACKING: LazyLock<Option<String>> = LazyLock::new(|| lacking_by(INSPECT));
    LACKING.as_deref()
}

fn lacking_by(inspect: &str) -> Option<String> {
    ELEMENTS.iter().find_map(|element| {
        let mut command = Command::new(inspect);
        match command.arg(element).stdin(Stdio::null()).output() {
            Ok(output) if output.status.success() => None,
            Ok(_) => Some(format!("GStreamer has no element {element} here")),
            Err(error) => Some(format!("{inspect}: {error}")),
        }
    })
}

/// Memory that a program has as its standard input, and reads or writes.
fn memory() -> io::Result<File> {
    Ok(memfd_create("messages", MemfdFlags::CLOEXEC)?.into())
}

/// All that the client is to send, each message with its number.
fn messages(transfer: &Transfer) -> io::Result<File> {
    let batches = transfer.length.as_nanos().div_ceil(PERIODS[0].as_nanos());
    let all = batches * u64::from(BATCH.get());
    let (memory, bytes) = (memory()?, transfer.bytes as u64);
    memory.set_len(all * bytes)?;
    for number in 0..all {
        memory.write_all_at(&number.to_le_bytes(), number * bytes)?;
    }
    Ok(memory)
}

/// What the server has written.
fn written(memory: &File, bytes: usize) -> io::Result<Told> {
    let (mut told, mut next) = (Told::default(), 0);
    let length = memory.metadata()?.len();
    for from in (0..length).step_by(bytes) {
        let mut number = [0; 8];
        memory.read_exact_at(&mut number, from)?;
        let is_whole = from + bytes as u64 <= length;
        told.receives(u64::from_le_bytes(number), is_whole, &mut next);
    }
    Ok(told)
}

/// How many messages to this port the kernel has dropped, by its table of sockets.
fn dropped(port: u16, sockets: &str) -> Option<u64> {
    let address = u32::from_ne_bytes([127, 0, 0, 1]);
    let address = format!("{address:08X}:{port:04X}");
    let mut lines = sockets.lines();
    let line = lines.find(|line| line.split_whitespace().nth(1) == Some(&address))?;
    line.split_whitespace().next_back()?.parse().ok()
}

/// Starts one of its programs, all threads of which are as real-time as others are.
fn start(pipeline: &str, name: &str, memory: &File, processor: usize) -> Result<Peer, HostError> {
    let mut command = Command::new("gst-launch-1.0");
    // What it says is read.
    command.env("LC_ALL", "C").arg("--verbose");
    command.args(pipeline.split_whitespace());
    let memory = memory.try_clone().map_err(failed(name))?;
    Peer::of(
        command,
        name,
        memory,
        Some((Policy::Fifo(PRIORITY), processor)),
    )
}

/// The first line that has this in it, from there on.
fn line_with(peer: &mut Peer, what: &str) -> Result<String, HostError> {
    loop {
        let line = peer.line()?;
        if let Some((_, rest)) = line.split_once(what) {
            return Ok(rest.trim().to_owned());
        }
    }
}

/// Runs it.
///
/// # Errors
///
/// [`HostError::Failed`]; nothing is left running.
pub(super) fn run(transfer: &Transfer, host: &mut Runner<'_>) -> Result<Transferred, HostError> {
    let processor = transfer::processor(host)?;
    let lost = failed("the messages");
    let (bytes, batch) = (transfer.bytes, BATCH.get());
    let [period, looks] = PERIODS.map(|period| period.as_nanos() / 1_000_000);
    let received = memory().map_err(&lost)?;
    let server = format!(
        "ts-udpsrc address=127.0.0.1 port=0 reuse=false mtu={bytes} buffer-size={BUFFER} context=server context-wait={looks} \
         ! fdsink fd=0 sync=false async=false"
    );
    let mut server = start(&server, "GStreamer's server", &received, processor)?;
    let port = line_with(&mut server, "port = ")?;
    let port: u16 = port.parse().map_err(failed("GStreamer's port"))?;
    line_with(&mut server, BEGINS)?;
    let _spinners = transfer.beside(processor)?;
    // A thread that waits for room in its queue asks again and again, which at the context's own priority leaves that nothing: there is always room.
    let client = format!(
        "fdsrc fd=0 blocksize={bytes} ! rawvideoparse format=gray8 width={WIDTH} height={} framerate={batch}000/{period} \
         ! ts-queue context=client context-wait={period} max-size-buffers=0 max-size-bytes=0 max-size-time=0 \
         ! ts-udpsink context=client context-wait={period} clients=127.0.0.1:{port} sync=true",
        bytes / WIDTH
    );
    let sent = messages(transfer).map_err(&lost)?;
    let mut client = start(&client, "GStreamer's client", &sent, processor)?;
    line_with(&mut client, BEGINS)?;
    watch(host, now() + transfer.length + REST)?;
    client.is_well()?;
    server.is_well()?;
    let sockets = fs::read_to_string("/proc/net/udp").map_err(&lost)?;
    let dropped = dropped(port, &sockets);
    let dropped = dropped
        .ok_or("it is not in /proc/net/udp")
        .map_err(failed("the server's port"))?;
    drop(server);
    let told = written(&received, bytes).map_err(&lost)?;
    if told.messages + told.wrong + dropped == 0 {
        return Err(lost(io::Error::other("GStreamer's client sent none")));
    }
    Ok(Transferred {
        sent: told.messages + told.wrong + dropped,
        received: told.messages,
        wrong: told.wrong,
    })
}

#[cfg(test)]
mod tests {
    use laxity_model::Span;

    use super::*;

    #[test]
    fn without_its_tool_it_is_lacking_and_the_tool_is_named() {
        let why = lacking_by("/nowhere/gst-inspect-1.0").expect("there is no such tool");
        assert!(why.starts_with("/nowhere/gst-inspect-1.0: "), "{why}");
        let why = lacking_by("false").expect("it never finds anything");
        assert_eq!(why, "GStreamer has no element ts-udpsrc here");
        assert_eq!(lacking_by("true"), None);
    }

    #[test]
    fn what_is_written_is_counted_as_our_own_server_counts() {
        let transfer = Transfer {
            ways: BOTH,
            bytes: 512,
            loaded: false,
            length: Span::from_millis(40),
        };
        let memory = messages(&transfer).expect("memory");
        let count = |messages, wrong| Told { messages, wrong };
        assert_eq!(written(&memory, 512).expect("memory"), count(40, 0));
        // The second comes once more in place of the fourth, and the last is not whole.
        memory
            .write_all_at(&1_u64.to_le_bytes(), 3 * 512)
            .and_then(|()| memory.set_len(39 * 512 + 100))
            .expect("memory");
        assert_eq!(written(&memory, 512).expect("memory"), count(38, 2));
    }

    #[test]
    fn what_the_kernel_does_not_say_of_a_port_is_not_nothing() {
        let address = u32::from_ne_bytes([127, 0, 0, 1]);
        let sockets = format!(
            "   sl  local_address rem_address   st tx_queue rx_queue drops\n\
             9012: {address:08X}:974A 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 983839 2 00000000787f0fe2 471      \n"
        );
        assert_eq!(dropped(0x974A, &sockets), Some(471));
        assert_eq!(dropped(0x974B, &sockets), None);
        assert_eq!(dropped(0x974A, &sockets.replace("471", "many")), None);
    }
}
