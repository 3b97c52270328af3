//! Ports that a descriptor feeds: what only a live host has. All else of ports is in the conformance suite.

mod common;

use std::io::{PipeReader, PipeWriter, Read, Write};
use std::os::fd::OwnedFd;
use std::thread;
use std::time::Duration;

use laxity_linux::doctor::rights::{self, Right};
use laxity_linux::{LiveConfig, LiveHost};
use laxity_model::analysis::Task;
use laxity_model::executor::edf::Edf;
use laxity_model::{
    Context, EventKind, Host, HostError, Mark, Placement, PortId, Priority, ProcessorId, Program,
    RunEnd, Service, Span, Step,
};

const CPU: ProcessorId = ProcessorId(0);
const THREAD: Placement = Placement::Thread(Priority::HIGHEST);
const BYTES: u8 = 20;
const LENGTH: Span = Span::from_secs(10);

/// A live host one of whose ports is fed by a pipe, of which the reading and the writing end are handed back too.
fn host(port: PortId) -> (LiveHost, PipeReader, PipeWriter) {
    let config = LiveConfig::detect(1).expect("a processor may be used");
    let mut host = LiveHost::new(config);
    let (reader, writer) = std::io::pipe().expect("a pipe");
    let looked_at = reader.try_clone().expect("a duplicate");
    host.feed(port, OwnedFd::from(looked_at));
    (host, reader, writer)
}

/// Writes one byte after the other, every 3 ms; then the pipe comes to its end.
fn write_slowly(mut writer: PipeWriter) -> thread::JoinHandle<()> {
    thread::spawn(move || {
        for byte in 0..BYTES {
            thread::sleep(Duration::from_millis(3));
            writer.write_all(&[byte]).expect("somebody reads");
        }
    })
}

/// Reads a pipe.
type Reader = Box<dyn FnMut(&mut dyn Context) -> Step + Send>;

/// Reads what there is whenever something has arrived, marks each byte, and finishes at the pipe's end.
fn reads(mut reader: PipeReader, port: PortId, mark: Mark) -> Reader {
    Box::new(move |context| {
        if context.arrival().is_none() {
            return Step::Wait(port);
        }
        let mut bytes = [0; 64];
        match reader.read(&mut bytes).expect("it can be read") {
            0 => Step::Finish,
            count => {
                for byte in &bytes[..count] {
                    context.mark(mark, [u64::from(*byte), 0]);
                }
                Step::Wait(port)
            }
        }
    })
}

/// Has a thread or a handler, which `add` adds, read all that is written to a pipe.
fn reads_all(add: impl FnOnce(&mut Program, Reader)) {
    let Some(_turn) = rights::require(&[Right::RealTime]) else {
        return;
    };
    let mut program = Program::new(1);
    let (port, mark) = (program.port(1), program.mark("byte"));
    let (mut host, reader, writer) = host(port);
    add(&mut program, reads(reader, port, mark));
    let writing = write_slowly(writer);
    let record = host.admit_and_run(program, LENGTH).expect("it runs");
    writing.join().expect("all was written");
    assert_eq!(record.ended_by, RunEnd::AllFinished);
    let marks = record.events.iter();
    let marks = marks.filter(|event| event.kind == EventKind::Mark(mark));
    let bytes: Vec<u64> = marks.map(|event| event.args[0]).collect();
    let written: Vec<u64> = (0..u64::from(BYTES)).collect();
    assert_eq!(bytes, written);
    let usage = record.ports[port.index()];
    assert!(usage.is_conserved() && usage.dropped == 0, "{usage:?}");
    assert!(usage.taken > 1, "{usage:?}");
}

#[test]
fn a_thread_waits_for_a_pipe() {
    reads_all(|program, reader| {
        program.add("reader", CPU, THREAD, reader);
    });
}

#[test]
fn a_handler_waits_for_a_pipe_while_its_executor_is_busy() {
    reads_all(|program, mut read| {
        let executor = program.executor("executor", (CPU, THREAD), None, Edf::new());
        let task = Task::new(Service::from_micros(50), Span::from_millis(3)).expect("a task");
        let on = |task| Placement::On { executor, task };
        let ended = program.semaphore(0);
        let reader = move |context: &mut dyn Context| {
            let step = read(context);
            if step == Step::Finish {
                context.signal(ended);
            }
            step
        };
        program.add("reader", CPU, on(Some(task)), reader);
        // Never waits, so that the executor never does: works and yields until the reader has ended.
        let mut pieces = 0;
        let busy = move |context: &mut dyn Context| {
            pieces += 1;
            if context.take(ended).is_some() {
                Step::Finish
            } else if pieces % 2 == 0 {
                Step::Yield
            } else {
                Step::Burn(Service::from_micros(200))
            }
        };
        program.add("busy", CPU, on(None), busy);
    });
}

#[test]
fn a_descriptor_for_no_port_is_refused() {
    let Some(_turn) = rights::require(&[Right::RealTime]) else {
        return;
    };
    let (mut host, _reader, _writer) = host(PortId(3));
    let mut program = Program::new(1);
    program.add("nobody", CPU, THREAD, |_: &mut dyn Context| Step::Finish);
    let refused = host.admit_and_run(program, LENGTH);
    assert!(
        matches!(&refused, Err(HostError::BadProgram(why)) if why.contains("port 3")),
        "{refused:?}"
    );
}
