//! GStreamer as the other end of what sends and receives RTP: a peer that knows nothing of us.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use laxity_linux::doctor::rights;

/// So many packets of voice, of 160 samples, and of music, of 441, are a second.
pub(crate) const PACKETS: [usize; 2] = [50, 100];
const SAMPLES: [usize; 2] = [160, 441];

const VOICE: &str = "application/x-rtp,media=audio,clock-rate=8000,encoding-name=PCMU,payload=0";
const MUSIC: &str =
    "application/x-rtp,media=audio,clock-rate=44100,encoding-name=L16,channels=1,payload=11";

/// Whether it is here; says so if not.
pub(crate) fn is_here() -> bool {
    let version = Command::new("gst-launch-1.0").arg("--version").output();
    let missing = version.is_err();
    if missing {
        rights::lacks("gst-launch-1.0 is not here");
    }
    !missing
}

/// Two ports of this machine that nobody has.
pub(crate) fn ports() -> [u16; 2] {
    let both = [0; 2].map(|_: u8| UdpSocket::bind("127.0.0.1:0").unwrap());
    both.map(|socket| socket.local_addr().unwrap().port())
}

/// A program, and what it has said so far. Each ends by itself after a while, whatever comes.
pub(crate) struct Running {
    child: Child,
    out: BufReader<ChildStdout>,
    said: String,
}

impl Running {
    /// Starts it, and waits until it has said this.
    pub(crate) fn until(command: &mut Command, said: &str) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let mut running = Self {
            child,
            out,
            said: String::new(),
        };
        while !running.said.contains(said) {
            let length = running.out.read_line(&mut running.said).unwrap();
            assert_ne!(length, 0, "{}", running.said);
        }
        running
    }

    /// All that it has said, when it has ended well.
    pub(crate) fn ends(mut self) -> String {
        self.out.read_to_string(&mut self.said).unwrap();
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status}: {}", self.said);
        self.said
    }

    /// What it has said so far.
    pub(crate) fn said(&self) -> &str {
        &self.said
    }
}

fn launch(pipelines: &str, until: &str) -> Running {
    let mut command = Command::new("timeout");
    command.args(["60", "gst-launch-1.0"]);
    Running::until(command.args(pipelines.split_whitespace()), until)
}

/// Listens at these ports for a second of voice and music, which it leaves as samples in files of that name in a directory.
pub(crate) fn listens([voice, music]: [u16; 2], directory: &Path) -> Running {
    let directory = directory.display();
    let [of_voice, of_music] = PACKETS;
    // Its sockets are there before its clock is.
    launch(
        &format!(
            "udpsrc port={voice} num-buffers={of_voice} caps={VOICE} ! rtppcmudepay ! mulawdec ! filesink location={directory}/voice \
             udpsrc port={music} num-buffers={of_music} caps={MUSIC} ! rtpL16depay ! filesink location={directory}/music"
        ),
        "Setting pipeline to PLAYING",
    )
}

/// Sends a second of voice and music to these ports.
pub(crate) fn sends([voice, music]: [u16; 2]) -> Running {
    let [of_voice, of_music] = PACKETS;
    let [in_voice, in_music] = SAMPLES;
    launch(
        &format!(
            "audiotestsrc is-live=true num-buffers={of_voice} samplesperbuffer={in_voice} ! audio/x-raw,rate=8000,channels=1 ! mulawenc ! rtppcmupay \
             ! udpsink host=127.0.0.1 port={voice} \
             audiotestsrc is-live=true num-buffers={of_music} samplesperbuffer={in_music} ! audio/x-raw,format=S16BE,rate=44100,channels=1 \
             ! rtpL16pay pt=11 min-ptime=10000000 max-ptime=10000000 ! udpsink host=127.0.0.1 port={music}"
        ),
        "Setting pipeline to PLAYING",
    )
}

/// Holds what it has heard to a second of a tone of 440 Hz, which passes zero upwards once a turn.
pub(crate) fn heard_the_tone(directory: &Path) {
    let decode: [fn([u8; 2]) -> i16; 2] = [i16::from_ne_bytes, i16::from_be_bytes];
    for (number, (name, decode)) in ["voice", "music"].into_iter().zip(decode).enumerate() {
        let bytes = std::fs::read(directory.join(name)).unwrap();
        let samples: Vec<i16> = bytes
            .chunks_exact(2)
            .map(|two| decode([two[0], two[1]]))
            .collect();
        assert_eq!(samples.len(), PACKETS[number] * SAMPLES[number], "{name}");
        let loudest = samples.iter().map(|sample| sample.unsigned_abs()).max();
        assert!(
            (11_800..=12_000).contains(&loudest.unwrap()),
            "{name}: {loudest:?}"
        );
        let turns = samples.windows(2).filter(|two| two[0] < 0 && two[1] >= 0);
        assert_eq!(turns.count(), 439, "{name}: all turns but the first");
    }
}

/// What a receiver of ours says of a second of both that came whole: every packet once, in no other clock than the sender's. Tells the samples of silence in each.
pub(crate) fn came_whole(said: &str) -> [i64; 2] {
    let line = |name: &str, packets: usize| {
        let begin = format!("{name}: {packets} packets, 0 lost, ");
        let line = said.lines().find_map(|line| line.strip_prefix(&begin));
        let line = line.unwrap_or_else(|| panic!("{name}: {said}"));
        let (silence, rest) = line.split_once(" samples of silence, ").unwrap();
        assert!(rest.starts_with("0 others, jitter "), "{said}");
        silence.parse().unwrap()
    };
    [line("voice", PACKETS[0]), line("music", PACKETS[1])]
}

/// What a sender of ours says of a second of both that the network took. Tells how many calls of each it missed.
pub(crate) fn was_sent(said: &str) -> [i64; 2] {
    let line = |name: &str, packets: usize| {
        let begin = format!("{name}: {packets} packets sent, 0 refused, ");
        let line = said.lines().find_map(|line| line.strip_prefix(&begin));
        let line = line.unwrap_or_else(|| panic!("{name}: {said}"));
        line.strip_suffix(" calls missed").unwrap().parse().unwrap()
    };
    [line("voice", PACKETS[0]), line("music", PACKETS[1])]
}

/// A receiver of ours, once it listens; and where.
pub(crate) fn receiver(program: &Path) -> (Running, [u16; 2]) {
    let mut command = Command::new(program);
    command.args(["receive", "127.0.0.1:0", "127.0.0.1:0", "1", "fair"]);
    let running = Running::until(&mut command, "music at ");
    let ports = ["voice at 127.0.0.1:", "music at 127.0.0.1:"].map(|begin| {
        let mut ports = running.said().lines();
        let port = ports.find_map(|line| line.strip_prefix(begin));
        port.unwrap().parse().unwrap()
    });
    (running, ports)
}

/// A sender of ours sends its second, and says so.
pub(crate) fn send(program: &Path, ports: [u16; 2]) -> String {
    let [voice, music] = ports.map(|port| format!("127.0.0.1:{port}"));
    let mut command = Command::new(program);
    command.args(["send", &voice, &music, "1", "fair"]);
    Running::until(&mut command, "").ends()
}

/// One of ours to another: every sample that was missed is silence, and nothing else is.
pub(crate) fn ours_to_ours(sender: &Path, receiver: &Path) {
    let (receiver, ports) = self::receiver(receiver);
    let missed = was_sent(&send(sender, ports));
    // A call is one packet of voice, and four of music.
    let expected = [missed[0] * 160, missed[1] * 4 * 441];
    assert_eq!(came_whole(&receiver.ends()), expected);
}

/// One of ours hears a stranger, and is heard by one, both at once.
pub(crate) fn ours_and_a_stranger(program: &Path, directory: &Path) {
    let (receiver, to_us) = receiver(program);
    let stranger = sends(to_us);
    let from_us = ports();
    let listener = listens(from_us, directory);
    was_sent(&send(program, from_us));
    listener.ends();
    heard_the_tone(directory);
    stranger.ends();
    let silence = came_whole(&receiver.ends());
    assert_eq!(silence, [0, 0], "it has no gaps");
}
