//! `laxity channel serve`: two hosts that are network namespaces, each with its daemon, and applications that reach them from other processes.

use std::fs::{self, Permissions};
use std::io::{self, BufRead as _, BufReader};
use std::num::NonZeroU32;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::{env, thread};

use laxity::channels::{
    Cause, Client, Error, HostId, Listens, Name, Receiver, Refusal, SendError, Sender, Told,
};
use laxity::doctor::rights;
use laxity_lab::key_file;
use laxity_linux::net::pair::Namespace;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// The places of their names among those of all hosts.
const BASE: HostId = HostId(0);
const ROBOT: HostId = HostId(1);
/// The user who may open what begins at the robot, and one of whom nothing is said.
const OPERATOR: u32 = 54_321;
const STRANGER: u32 = 54_322;
/// Where the process of an application finds its node, and what it does there.
const SOCKET: &str = "TEST_SOCKET";
const DOES: &str = "TEST_DOES";

fn control() -> Name {
    Name::new("control").unwrap()
}

/// A file of the network, with these public keys.
fn network(robot: impl std::fmt::Display, base: impl std::fmt::Display) -> String {
    format!(
        r#"
[hosts.robot]
key = "{robot}"
[hosts.base]
key = "{base}"
[links.wire]
between = ["robot", "base"]
at = ["10.0.0.1", "10.0.0.2"]
rate = "100 Mbit/s"
own = "class"
overhead = "0 B"
[channels.control]
from = "robot"
to = "base"
max = "64 B"
rate = "1000/s"
burst = 8
within = "20ms"
[users.operator]
uid = {OPERATOR}
host = "robot"
open = ["control"]
"#
    )
}

/// A daemon, which is killed with this.
struct Daemon {
    child: Child,
    socket: PathBuf,
    /// What it said when it began.
    said: String,
}

impl Daemon {
    fn start(host: &Namespace, name: &str, directory: &Path) -> Self {
        let socket = directory.join(name).join("channels.sock");
        let mut command = Command::new(env!("CARGO_BIN_EXE_laxity"));
        command.args(["channel", "serve", "network.toml", "--machine", "none"]);
        command.args(["--host", name, "--key", &format!("{name}.key"), "--socket"]);
        command.arg(&socket).current_dir(directory);
        command.stdout(Stdio::piped());
        let mut child = host.within(None, || command.spawn().unwrap()).unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut said = String::new();
        while !said.contains("Applications reach it") {
            said += &lines.next().expect("it begins").unwrap();
            said.push('\n');
        }
        Self {
            child,
            socket,
            said,
        }
    }

    fn client(&self) -> Client {
        Client::connect(&self.socket).unwrap()
    }

    fn end(&mut self, signal: Signal) -> ExitStatus {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
        self.child.wait().unwrap()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Two hosts with a link, and their daemons.
struct Hosts {
    robot: Daemon,
    base: Daemon,
    namespaces: [Namespace; 2],
    _directory: TempDir,
}

impl Hosts {
    /// `None` where that is not permitted.
    fn new() -> Option<Self> {
        let Ok(near) = Namespace::new() else {
            rights::lacks("no network namespaces");
            return None;
        };
        let far = Namespace::new().unwrap();
        near.join("near", (&far, "far")).unwrap();
        near.set_address("near", "10.0.0.1/24", true).unwrap();
        far.set_address("far", "10.0.0.2/24", true).unwrap();
        let directory = TempDir::new().unwrap();
        let path = directory.path();
        fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
        let keys = ["robot", "base"].map(|host| key_file::make(&path.join(format!("{host}.key"))));
        let [robot, base] = keys.map(Result::unwrap);
        fs::write(path.join("network.toml"), network(robot, base)).unwrap();
        Some(Self {
            robot: Daemon::start(&near, "robot", path),
            base: Daemon::start(&far, "base", path),
            namespaces: [near, far],
            _directory: directory,
        })
    }

    /// The queues of the robot's interface.
    fn queues(&self) -> String {
        let shown = self.namespaces[0].within(None, || {
            let mut tc = Command::new("tc");
            tc.args(["qdisc", "show", "dev", "near"]);
            String::from_utf8(tc.output().unwrap().stdout).unwrap()
        });
        shown.unwrap()
    }

    /// A channel from the robot to the base, as soon as they know each other.
    fn channel(&self) -> (Sender, Receiver) {
        let listener = self.base.client().listen(control(), listens()).unwrap();
        let sender = open(&self.robot.client()).unwrap();
        (sender, listener.accept(None).unwrap().unwrap())
    }
}

fn listens() -> Listens {
    Listens::to(NonZeroU32::new(64).unwrap())
}

/// Opens the channel as the file has it, as soon as the neighbour is there.
fn open(client: &Client) -> Result<Sender, Error> {
    loop {
        match client.open(&control(), None) {
            Err(Error::Refused(Refusal::NoLink { .. })) => thread::yield_now(),
            opened => return opened,
        }
    }
}

/// Why nothing comes any more.
fn over(mut receiver: Receiver) -> Error {
    loop {
        if let Err(why) = receiver.receive(&mut [0; 64], None) {
            return why;
        }
    }
}

/// A process of an application, which does this, as a user.
fn application(does: &str, daemon: &Daemon, user: u32) -> io::Result<Child> {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", "in_a_process_of_its_own", "--nocapture"]);
    command.env(SOCKET, &daemon.socket).env(DOES, does);
    command.uid(user).stdout(Stdio::piped()).spawn()
}

/// What an application does: no test of its own.
#[test]
fn in_a_process_of_its_own() {
    let Some(path) = env::var_os(SOCKET) else {
        return;
    };
    let client = Client::connect(Path::new(&path)).unwrap();
    match env::var(DOES).unwrap().as_str() {
        "sends" => {
            let mut sender = client.open(&control(), None).unwrap();
            while sender.send_until(&[7; 64], None).is_ok() {}
        }
        "opens" => println!("opened: {:?}", open(&client).map(drop)),
        _ => println!(
            "listens: {:?}",
            client.listen(control(), listens()).map(drop)
        ),
    }
}

#[test]
fn applications_of_two_daemons_send_and_receive_and_links_are_put_back() {
    let Some(mut hosts) = Hosts::new() else {
        return;
    };
    assert!(
        hosts.robot.said.starts_with("robot (host 1, key "),
        "{}",
        hosts.robot.said
    );
    let link = "link wire to base: 100 Mbit/s, 10.0.0.1:27768 to 10.0.0.2:27768";
    assert!(hosts.robot.said.contains(link), "{}", hosts.robot.said);
    let (mut sender, mut receiver) = hosts.channel();
    assert!(hosts.queues().contains("htb 6c78:"), "{}", hosts.queues());
    let mut into = [0; 64];
    for count in 0..1_000_u64 {
        sender.send_until(&[count as u8; 64], None).unwrap();
        match receiver.receive(&mut into, None).unwrap().unwrap() {
            (Told::Message { number, gap, .. }, 64) => {
                assert_eq!((number, gap), (count, 0));
                assert_eq!(into, [count as u8; 64]);
            }
            // Before each message that is late, where the machine is so busy.
            other => panic!("{other:?}"),
        }
    }
    let ended = hosts.robot.end(Signal::TERM);
    assert_eq!(ended.code(), Some(0));
    assert!(!hosts.queues().contains("htb"), "{}", hosts.queues());
    assert!(!hosts.robot.socket.exists());
    let told = over(receiver);
    assert!(
        matches!(told, Error::Over(Cause::Lost { silent: ROBOT, .. })),
        "{told}"
    );
}

#[test]
fn of_an_application_that_is_killed_the_other_end_is_told() {
    let Some(hosts) = Hosts::new() else {
        return;
    };
    // So that they know each other.
    drop(hosts.channel());
    let listener = hosts.base.client().listen(control(), listens()).unwrap();
    let mut child = application("sends", &hosts.robot, 0).unwrap();
    let receiver = listener.accept(None).unwrap().unwrap();
    drop(listener);
    child.kill().unwrap();
    child.wait().unwrap();
    let told = over(receiver);
    assert!(matches!(told, Error::Over(Cause::Died(ROBOT))), "{told}");
    // The other way round: who receives goes, with all that he has, and who sends is told. Nothing of it stays.
    let (mut sender, receiver) = hosts.channel();
    drop(receiver);
    while sender.send_until(&[0; 64], None).is_ok() {}
    let told = sender.send(&[0; 64]).unwrap_err();
    assert!(
        matches!(
            told,
            SendError::Over(Error::Over(Cause::Closed(BASE) | Cause::Died(BASE)))
        ),
        "{told}"
    );
}

#[test]
fn of_a_daemon_that_is_killed_all_are_told_and_its_links_are_put_back() {
    let Some(mut hosts) = Hosts::new() else {
        return;
    };
    let (mut sender, receiver) = hosts.channel();
    hosts.robot.end(Signal::KILL);
    while sender.send_until(&[0; 64], None).is_ok() {}
    let told = sender.send(&[0; 64]).unwrap_err();
    assert!(matches!(told, SendError::Over(Error::Ended)), "{told}");
    let told = over(receiver);
    assert!(
        matches!(told, Error::Over(Cause::Lost { silent: ROBOT, .. })),
        "{told}"
    );
    // The guardian does it, and nobody says when.
    while hosts.queues().contains("htb") {
        thread::yield_now();
    }
}

#[test]
fn users_do_what_the_file_lets_them() {
    if !rustix::process::geteuid().is_root() {
        return rights::skip("only root can be another user");
    }
    let Some(hosts) = Hosts::new() else {
        return;
    };
    let _listener = hosts.base.client().listen(control(), listens()).unwrap();
    let said = |does: &str, user: u32| {
        let child = match application(does, &hosts.robot, user) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return None,
            child => child.unwrap(),
        };
        let Output { stdout, .. } = child.wait_with_output().unwrap();
        Some(String::from_utf8(stdout).unwrap())
    };
    let Some(opened) = said("opens", OPERATOR) else {
        return rights::skip("others may not execute this test");
    };
    assert!(opened.contains("opened: Ok(())"), "{opened}");
    for (does, user) in [
        ("opens", STRANGER),
        ("listens", STRANGER),
        ("listens", OPERATOR),
    ] {
        let told = said(does, user).unwrap();
        assert!(told.contains("Err(Forbidden)"), "{told}");
    }
}

#[test]
fn what_a_host_lacks_is_said_with_what_mends_it() {
    let directory = TempDir::new().unwrap();
    let path = directory.path();
    let key = key_file::make(&path.join("robot.key")).unwrap();
    let other = key_file::make(&path.join("base.key")).unwrap();
    let right = network(key, other);
    let nowhere = right.replace("at = [\"10.0.0.1\", \"10.0.0.2\"]\n", "");
    let whole = right.replace("own = \"class\"", "own = \"all\"");
    for (text, host, code, why) in [
        (
            &right,
            "nobody",
            64,
            "no host `nobody`: its hosts are robot, base",
        ),
        (
            &right,
            "base",
            1,
            "is not that of [hosts.base]: its public one is",
        ),
        (
            &nowhere,
            "robot",
            1,
            "[links.wire] does not say where its ends are: write `at`",
        ),
        (&whole, "robot", 1, "write own = \"class\", or \"none\""),
    ] {
        fs::write(path.join("network.toml"), text).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_laxity"));
        command.args(["channel", "serve", "network.toml", "--key", "robot.key"]);
        command.args(["--socket", "own/channels.sock", "--host", host]);
        let told = command.current_dir(path).output().unwrap();
        let said = String::from_utf8(told.stderr).unwrap();
        assert_eq!(told.status.code(), Some(code), "{said}");
        assert!(said.contains(why), "{said}");
    }
}
