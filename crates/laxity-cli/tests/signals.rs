//! Signals to `laxity exec` and to its process group reach the program once, as if it had been started without; a terminal's keys too.

mod common;

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use common::{Bench, eventually, json};
use laxity_linux::doctor::rights::{self, LiveTest, Right};
use laxity_linux::os::cpuset::CpuSet;
use laxity_linux::os::proc::stat_of;
use laxity_linux::os::sched::{self, Policy, Tid};
use rustix::fs::{Mode, OFlags, open};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use rustix::pty::{OpenptFlags, openpt, ptsname, unlockpt};

const LAXITY: &str = env!("CARGO_BIN_EXE_laxity");

fn live() -> Option<LiveTest> {
    rights::require(&[Right::RealTime])
}

/// Counts SIGTERM until it gets SIGUSR1, and tells then. It waits in a builtin: a process that it waits for would get the group's signals.
const COUNTER: &str = "n=0; trap 'n=$((n+1)); echo got' TERM; trap 'echo $n; exit 0' USR1
echo ready; while :; do :; done";

/// What somebody writes.
struct Shown(Receiver<u8>);

impl Shown {
    fn of(mut from: impl Read + Send + 'static) -> Self {
        let (sender, shown) = channel();
        thread::spawn(move || {
            let mut byte = [0];
            // It ends with who writes.
            while from.read(&mut byte).is_ok_and(|read| read == 1) && sender.send(byte[0]).is_ok() {
            }
        });
        Self(shown)
    }

    /// All until this.
    fn until(&mut self, wanted: &str) -> String {
        let latest = Instant::now() + Duration::from_secs(20);
        let mut text = String::new();
        while !text.ends_with(wanted) {
            let left = latest.saturating_duration_since(Instant::now());
            let byte = self.0.recv_timeout(left);
            let byte = byte.unwrap_or_else(|_| panic!("no {wanted:?} in {text:?}"));
            text.push(char::from(byte));
        }
        text
    }
}

/// A job of its own: laxity with a program in its process group. Dropped, both are gone.
struct Job {
    child: Child,
    shown: Shown,
}

impl Drop for Job {
    fn drop(&mut self) {
        // The program ends with laxity.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A program that heeds all signals whoever runs the tests: a shell starts in the background what ignores ^C, and `nohup` what ignores a hang-up.
fn heeding(program: &str) -> Command {
    let mut command = Command::new("env");
    command.args(["--default-signal", program]);
    command
}

impl Job {
    fn start(options: &[&str], program: &str) -> Self {
        let mut command = heeding(LAXITY);
        command.arg("exec").args(options);
        command.args(["--", "sh", "-c", program]).process_group(0);
        let command = command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let shown = Shown::of(child.stdout.take().unwrap());
        let mut job = Self { child, shown };
        assert_eq!(job.shown.until("\n"), "ready\n");
        job
    }

    /// Of a signal that is pending, another one of its kind changes nothing.
    fn settle(&self) {
        let status = || std::fs::read_to_string(format!("/proc/{}/status", self.child.id()));
        eventually("laxity takes its signals", || {
            status().unwrap().contains("ShdPnd:\t0000000000000000")
        });
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(self.child.id().cast_signed()).unwrap()
    }
}

#[test]
fn a_signal_comes_once_to_whom_it_is_for() {
    let Some(_live) = live() else { return };
    for options in [&["--reserve", "2ms/8ms"][..], &["-n", "1"]] {
        let mut job = Job::start(options, COUNTER);
        for round in 0..10 {
            if round % 2 == 0 {
                kill_process_group(job.pid(), Signal::TERM).unwrap();
            } else {
                kill_process(job.pid(), Signal::TERM).unwrap();
            }
            assert_eq!(job.shown.until("\n"), "got\n", "round {round}");
            job.settle();
        }
        kill_process(job.pid(), Signal::USR1).unwrap();
        assert_eq!(job.shown.until("\n"), "10\n", "{options:?}");
        assert_eq!(job.child.wait().unwrap().code(), Some(0));
    }
}

/// All that a program can catch, but what its own instructions cause and what tells it of its children.
fn for_a_program() -> Vec<i32> {
    let own = [
        libc::SIGKILL,
        libc::SIGSTOP,
        libc::SIGCHLD,
        libc::SIGILL,
        libc::SIGTRAP,
        libc::SIGBUS,
        libc::SIGFPE,
        libc::SIGSEGV,
        libc::SIGSYS,
    ];
    let all = (1..32).chain(libc::SIGRTMIN()..=libc::SIGRTMAX());
    all.filter(|signal| !own.contains(signal)).collect()
}

/// By number: of real-time signals not all have a name.
fn send(signal: i32, to: &str) {
    let kill = format!("kill -{signal} {to}");
    let sent = Command::new("sh").args(["-c", &kill]).status();
    assert!(sent.unwrap().success(), "{signal} to {to}");
}

#[test]
fn whatever_can_be_caught_comes_once() {
    let Some(_live) = live() else { return };
    let trap = |signal: &i32| format!("trap 'echo got {signal}' {signal}; ");
    let traps: String = for_a_program().iter().map(trap).collect();
    let program = format!("{traps} echo ready; while :; do :; done");
    let mut job = Job::start(&["-n", "1"], &program);
    let laxity = job.pid().as_raw_nonzero();
    for signal in for_a_program() {
        for to in [format!("{laxity}"), format!("-{laxity}")] {
            send(signal, &to);
            assert_eq!(job.shown.until("\n"), format!("got {signal}\n"), "{to}");
            job.settle();
        }
    }
    // What came twice would be shown before this.
    send(libc::SIGALRM, &laxity.to_string());
    assert_eq!(job.shown.until("\n"), format!("got {}\n", libc::SIGALRM));
}

#[test]
fn a_program_that_a_signal_ends_has_its_laxity_end_by_it() {
    let Some(_live) = live() else { return };
    for signal in [
        libc::SIGALRM,
        libc::SIGABRT,
        libc::SIGXCPU,
        libc::SIGRTMIN(),
    ] {
        let mut job = Job::start(&["-n", "1"], "echo ready; while :; do :; done");
        send(signal, &job.child.id().to_string());
        assert_eq!(job.child.wait().unwrap().signal(), Some(signal));
    }
}

#[test]
fn signals_that_come_together_come_once_each() {
    let Some(_live) = live() else { return };
    // Of several that wait the shell takes the one with the least number first.
    let program = "trap 'n=$((n+1))' HUP USR1 USR2; trap 'm=$n; n=0; echo $m' TERM; n=0
echo ready; while :; do :; done";
    let mut job = Job::start(&["-n", "1"], program);
    for _ in 0..20 {
        for signal in [Signal::USR2, Signal::USR1, Signal::HUP] {
            kill_process_group(job.pid(), signal).unwrap();
        }
        job.settle();
        kill_process(job.pid(), Signal::TERM).unwrap();
        assert_eq!(job.shown.until("\n"), "3\n");
    }
}

/// More than anybody takes at once come while laxity stands still: what is left over would pass for the group's for ever.
#[test]
fn none_of_many_is_lost_nor_taken_for_another() {
    let Some(_live) = live() else { return };
    let (many, mark) = (libc::SIGRTMIN(), libc::SIGRTMIN() + 1);
    let program = format!(
        "trap 'echo many' {many}; trap 'echo mark' {mark}; echo ready; while :; do :; done"
    );
    let mut job = Job::start(&["-n", "1"], &program);
    let laxity = job.pid();
    kill_process(laxity, Signal::STOP).unwrap();
    for _ in 0..20 {
        send(many, &format!("-{}", laxity.as_raw_nonzero()));
    }
    kill_process(laxity, Signal::CONT).unwrap();
    job.settle();
    for _ in 0..3 {
        send(mark, &laxity.as_raw_nonzero().to_string());
        job.shown.until("mark\n");
        send(many, &laxity.as_raw_nonzero().to_string());
        assert_eq!(job.shown.until("\n"), "many\n");
    }
}

/// A program that waits until it has its reservation is there, and not yet itself: a signal's handlers are laxity's then.
#[test]
fn a_signal_to_the_group_before_the_program_executes_is_not_lost() {
    let Some(_live) = live() else { return };
    let mut command = heeding(LAXITY);
    command.args(["exec", "-q", "--reserve", "2ms/8ms", "--", "sleep", "20"]);
    let mut child = command.process_group(0).spawn().unwrap();
    let laxity = child.id();
    let children = |parent: u32| {
        let all = std::fs::read_dir("/proc").unwrap();
        let all = all.filter_map(|one| one.ok()?.file_name().to_str()?.parse().ok());
        let is_child = move |one: &i32| stat_of(Tid(*one), 4).ok() == Some(parent);
        all.filter(is_child).collect::<Vec<i32>>()
    };
    let name = |process: i32| std::fs::read_to_string(format!("/proc/{process}/comm"));
    eventually("it waits", || {
        let keepers = children(laxity).into_iter();
        let mut keepers = keepers.filter(|one| name(*one).is_ok_and(|name| name == "keeper\n"));
        keepers.any(|keeper| !children(keeper.cast_unsigned()).is_empty())
    });
    kill_process_group(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGINT));
}

#[test]
fn what_the_caller_ignores_the_program_ignores() {
    let Some(_live) = live() else { return };
    let script = format!(
        "trap '' HUP; exec {LAXITY} exec -q --reserve 2ms/8ms -- sh -c 'kill -HUP $$ $PPID; echo here'"
    );
    let output = Command::new("sh").args(["-c", &script]).output().unwrap();
    assert_eq!(output.stdout, b"here\n", "{output:?}");
}

/// A shell with job control on a terminal of its own.
struct Terminal {
    keys: File,
    shown: Shown,
    shell: Child,
    bench: Bench,
}

impl Terminal {
    fn open() -> Self {
        let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        unlockpt(&controller).unwrap();
        let name = ptsname(&controller, Vec::new()).unwrap();
        let open =
            || File::from(open(&*name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap());
        let bench = Bench::new();
        let mut shell = heeding("setsid");
        // Without line editing, which would change the terminal's settings at each prompt.
        shell.args(["--ctty", "bash", "--norc", "--noediting", "-i"]);
        shell
            .current_dir(bench.path("."))
            .env("PS1", "")
            .env("L", LAXITY);
        shell.stdin(open()).stdout(open()).stderr(open());
        let shell = shell.spawn().unwrap();
        let keys = File::from(controller);
        Self {
            shown: Shown::of(keys.try_clone().unwrap()),
            keys,
            shell,
            bench,
        }
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// What a line that is typed shows, until it is done. What is typed is shown too, so words to be waited for are not typed as they are.
    fn done(&mut self, line: &str) -> String {
        self.press(&format!("{line}; echo do''ne\n"));
        self.shown.until("done\r\n")
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It ends by this alone, and its jobs with their terminal.
        let _ = self.shell.kill();
        let _ = self.shell.wait();
    }
}

#[test]
fn ctrl_c_comes_once_and_the_terminal_is_as_it_was() {
    let Some(_live) = live() else { return };
    let mut terminal = Terminal::open();
    let before = terminal.done("stty -a");
    terminal.bench.write(
        "program",
        "trap 'echo interrup\"\"ted; exit 9' INT; echo rea\"\"dy; while :; do :; done\n",
    );
    terminal.press("$L exec --reserve 2ms/8ms -- sh program; echo co''de $?\n");
    terminal.shown.until("ready\r\n");
    terminal.press("\x03");
    let shown = terminal.shown.until("code 9\r\n");
    assert_eq!(shown.matches("interrupted").count(), 1, "{shown}");
    assert_eq!(terminal.done("stty -a"), before);
}

/// A program that is ended with the test, whatever becomes of that.
struct Spinner(Child);

impl Drop for Spinner {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// It is not in the terminal's job, and runs on: with the rank of its slots it would have the processor for as long as laxity is stopped.
#[test]
fn ctrl_z_of_who_adopted_a_program_takes_its_rank_away() {
    let Some(_live) = live() else { return };
    let spin = Command::new("sh")
        .args(["-c", "while :; do :; done"])
        .spawn();
    let adopted = Spinner(spin.unwrap());
    let tid = Tid(adopted.0.id().cast_signed());
    let rank = || sched::policy(tid).unwrap();
    let own = rank();
    let mut terminal = Terminal::open();
    terminal.press(&format!(
        "$L exec --reserve 2ms/8ms --status-json=s.json --pid {tid}\n"
    ));
    eventually("it has slots", || rank() == Policy::Fifo(80));
    terminal.press("\x1a");
    terminal.shown.until("Stopped");
    // Of so many looks a quarter would fall into slots.
    for _ in 0..200 {
        assert_eq!(rank(), own);
        thread::sleep(Duration::from_millis(1));
    }
    terminal.press("fg\n");
    eventually("it has slots again", || rank() == Policy::Fifo(80));
    terminal.press("\x03");
    eventually("it is as it was", || terminal.bench.path("s.json").exists());
    assert_eq!(rank(), own);
    let status = json(&terminal.bench, "s.json");
    assert_eq!(status["message"], "the program runs on", "{status}");
}

#[test]
fn ctrl_z_stops_the_job_without_its_rank_and_fg_gives_it_back() {
    let Some(_live) = live() else { return };
    for confine in ["", "--confine=freeze"] {
        if !confine.is_empty() && rights::missing(Right::Freezer).is_some() {
            continue;
        }
        let mut terminal = Terminal::open();
        let program = "echo $$ > pid; echo rea\"\"dy; while :; do :; done\n";
        terminal.bench.write("program", program);
        let line = format!("$L exec --reserve 2ms/8ms {confine} --json=r.json -- sh program\n");
        terminal.press(&line);
        terminal.shown.until("ready\r\n");
        let pid = String::from_utf8(terminal.bench.read("pid")).unwrap();
        let tid = Tid(pid.trim().parse().unwrap());
        let rank = || sched::policy(tid).unwrap();
        let state = || stat_of(tid, 3);
        eventually("it has slots", || rank() == Policy::Fifo(80));
        terminal.press("\x1a");
        terminal.shown.until("Stopped");
        // As this is itself, whatever it is started with.
        let own = sched::policy(Tid::current()).unwrap();
        assert_eq!((state(), rank()), (Ok('T'), own));
        terminal.press("fg\n");
        eventually("it has slots again", || {
            rank() == Policy::Fifo(80) && state() != Ok('T')
        });
        terminal.press("\x03");
        let shown = terminal.done("echo co''de $?");
        assert!(shown.contains("code 130"), "{shown}");
        let received = json(&terminal.bench, "r.json");
        assert_eq!(received["enforcer"], "slots", "{received}");
    }
}

/// Does something beside a stranger above all of laxity, which has this processor until that is done.
fn outranked(cpu: usize, what: impl FnOnce()) {
    let is_over = AtomicBool::new(false);
    let (begin, begun) = channel();
    thread::scope(|scope| {
        let stranger = scope.spawn(|| {
            let own = Tid::current();
            sched::set_affinity(own, &CpuSet::single(cpu)).unwrap();
            sched::set_policy(own, Policy::Fifo(99)).unwrap();
            begin.send(()).unwrap();
            let latest = Instant::now() + Duration::from_secs(8);
            while !is_over.load(Ordering::SeqCst) && Instant::now() < latest {
                std::hint::spin_loop();
            }
            is_over.load(Ordering::SeqCst)
        });
        begun.recv().unwrap();
        what();
        is_over.store(true, Ordering::SeqCst);
        assert!(stranger.join().unwrap(), "it had ended before");
    });
}

/// Above dispatcher and witness: neither sees the end where it is, and each may see it elsewhere.
#[test]
fn who_outranks_all_of_laxity_does_not_keep_it_from_ending() {
    let Some(_live) = rights::require(&[Right::RealTime, Right::Processors(2)]) else {
        return;
    };
    let cpus = sched::affinity(Tid::current()).unwrap();
    let cpu = cpus.iter().next().unwrap();
    let on = cpu.to_string();
    let spinner = "echo ready; while :; do :; done";
    let mut job = Job::start(&["--reserve", "2ms/8ms", "-a", &on], spinner);
    outranked(cpu, || {
        kill_process_group(job.pid(), Signal::TERM).unwrap();
        job.child.wait().unwrap();
    });
}

/// Its threads there cannot die where they are, and all that it is to end and to give back waits for their end.
#[test]
fn who_outranks_all_of_laxity_does_not_keep_it_from_being_killed() {
    let needed = [
        Right::RealTime,
        Right::Processors(2),
        Right::Freezer,
        Right::ThreadPidfd,
    ];
    let Some(_live) = rights::require(&needed) else {
        return;
    };
    let cpus = sched::affinity(Tid::current()).unwrap();
    let cpu = cpus.iter().next().unwrap();
    let on = cpu.to_string();
    let spin = ["-c", "while :; do :; done"];
    let adopted = Spinner(Command::new("sh").args(spin).spawn().unwrap());
    let group = || std::fs::read_to_string(format!("/proc/{}/cgroup", adopted.0.id())).unwrap();
    let tid = Tid(adopted.0.id().cast_signed());
    let (home, own) = (group(), sched::policy(tid).unwrap());
    let mut laxity = heeding(LAXITY);
    laxity.args([
        "exec",
        "-q",
        "--reserve",
        "2ms/8ms",
        "--confine=freeze",
        "-a",
        &on,
    ]);
    let mut laxity = Spinner(laxity.args(["--pid", &tid.to_string()]).spawn().unwrap());
    eventually("it is held", || {
        group() != home && sched::policy(tid) == Ok(Policy::Fifo(80))
    });
    outranked(cpu, || {
        laxity.0.kill().unwrap();
        eventually("it is given back", || {
            group() == home && sched::policy(tid) == Ok(own)
        });
        laxity.0.wait().unwrap();
    });
    let mut job = Job::start(&["--reserve", "2ms/8ms", "-a", &on], COUNTER);
    outranked(cpu, || {
        job.child.kill().unwrap();
        // It has its output until its end.
        let told = job.shown.0.recv_timeout(Duration::from_secs(20));
        assert_eq!(told, Err(RecvTimeoutError::Disconnected));
        job.child.wait().unwrap();
    });
}
