//! A handler in C that looks for a yield: what it sees, who comes next, and what a descriptor releases. One test, as a process has one executor.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_int, c_void};
use std::io::{Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};

use laxity_capi::{
    LAXITY_ANY_PROCESSOR, LAXITY_DEADLINE, RTS_ASKS_SUSPEND, RTS_DESCRIPTOR, RTS_FAIR, RTS_PAUSES,
    RTS_REJECT, RTS_RMDP, RTS_SKIP, laxity_message, laxity_now_ns, laxity_request, rts_attributes,
    rts_close, rts_counts, rts_creat, rts_end, rts_funargs, rts_options, rts_read, rts_run,
    rts_set, rts_sleep, rts_start, rts_yield,
};

const OPTIONS: rts_options = rts_options {
    size: size_of::<rts_options>() as u32,
    policy: RTS_RMDP,
    rank: RTS_FAIR,
    priority: 90,
    processor: LAXITY_ANY_PROCESSOR,
    events: 2,
    reservation: laxity_request {
        size: size_of::<laxity_request>() as u32,
        enforcer: LAXITY_DEADLINE,
        service_ns: 0,
        period_ns: 0,
        processor: LAXITY_ANY_PROCESSOR,
        flags: 0,
    },
    late_ns: 0,
    call_ns: 0,
    quantum_ns: 0,
};

const ATTRIBUTES: rts_attributes = rts_attributes {
    size: size_of::<rts_attributes>() as u32,
    flags: 0,
    name: ptr::null(),
    first_ns: 0,
    period_ns: 20_000_000,
    deadline_ns: 0,
    pdu_ns: 10_000,
    batch: 1,
    quantum: 1,
    on_overrun: RTS_SKIP,
    at_most: 0,
    fd: -1,
    when_full: RTS_REJECT,
    after: 0,
    group: 0,
};

/// What happened, in its order.
#[derive(PartialEq, Eq, Debug)]
enum Seen {
    /// A quantum of the long one, which saw what it ought to.
    Quantum,
    Quick,
    /// All of a batch, of which so many were to be done.
    Batch(u32),
    /// So many bytes, the first of which is this.
    Bytes(usize, u8),
}

static QUANTA: AtomicU32 = AtomicU32::new(0);

/// Works until a look sees somebody more urgent, however often it must look.
unsafe extern "C" fn long(arg: *mut rts_funargs) {
    // SAFETY: it is called with both structures, and a block that outlives the executor.
    let (tell, call) = unsafe { (&*(*arg).pcb.cast::<Sender<Seen>>(), (*arg).smstr) };
    // SAFETY: as above; and so it is below. The library writes there, too.
    let (before, copy) = unsafe { ((*call).yield_request, *arg) };
    while rts_yield(arg) == 0 {
        // SAFETY: as above.
        assert_eq!(unsafe { (*call).yield_request }, 0);
    }
    // It is a level: it stays until the handler has returned.
    let looks = [rts_yield(arg), rts_yield(&raw const copy), rts_yield(arg)];
    assert_eq!(looks, [1, -1, 1]);
    // SAFETY: as above. The first time it does nothing, and then one of its two at a time.
    unsafe {
        assert_eq!((before, (*call).yield_request), (0, 1));
        let was_called_before = QUANTA.fetch_add(1, Ordering::Relaxed) > 0;
        (*call).pdu_count += u32::from(was_called_before);
        if (*call).pdu_count == (*call).batch {
            (*call).asks = RTS_ASKS_SUSPEND;
        }
    }
    tell.send(Seen::Quantum).expect("the test waits for it");
}

unsafe extern "C" fn quick(arg: *mut rts_funargs) {
    // SAFETY: it is called with both structures, and a block that outlives the executor.
    let (tell, call) = unsafe { (&*(*arg).pcb.cast::<Sender<Seen>>(), &mut *(*arg).smstr) };
    call.pdu_count = call.pdu_goal;
    // One that is released after the last quantum is nobody's affair.
    let _ = tell.send(Seen::Quick);
}

/// As the paper's figure 5 has it: on to the end of the batch, as long as nobody asks for a yield.
unsafe extern "C" fn whole(arg: *mut rts_funargs) {
    // SAFETY: it is called with both structures, and a block that outlives the executor.
    let (tell, call) = unsafe { (&*(*arg).pcb.cast::<Sender<Seen>>(), &mut *(*arg).smstr) };
    while call.pdu_count < call.batch && call.yield_request == 0 {
        call.pdu_count += 1;
    }
    call.asks = RTS_ASKS_SUSPEND;
    let whole = Seen::Batch(call.pdu_goal);
    tell.send(whole).expect("the test waits for it");
}

unsafe extern "C" fn fed(arg: *mut rts_funargs) {
    type Fed = (Sender<Seen>, std::io::PipeReader);
    // SAFETY: it is called with both structures, and a block of its own that outlives the executor.
    let (block, call) = unsafe { (&mut *(*arg).pcb.cast::<Fed>(), &mut *(*arg).smstr) };
    call.pdu_count = call.pdu_goal;
    let mut bytes = [0; 8];
    let count = block.1.read(&mut bytes).expect("it can be read");
    if count == 0 {
        call.asks = RTS_ASKS_SUSPEND;
    }
    let bytes = Seen::Bytes(count, bytes[0]);
    block.0.send(bytes).expect("the test waits for it");
}

fn run(
    attributes: rts_attributes,
    handler: unsafe extern "C" fn(*mut rts_funargs),
    pcb: *mut c_void,
) -> c_int {
    let mut rtu = -1;
    // SAFETY: all are there, and the block is until the executor has ended.
    let error = unsafe { rts_creat(&raw const attributes, Some(handler), pcb, &raw mut rtu) };
    // SAFETY: a message of this thread, which makes no other call meanwhile.
    assert_eq!(error, 0, "{:?}", unsafe {
        CStr::from_ptr(laxity_message())
    });
    assert_eq!(rts_run(rtu), 0);
    rtu
}

fn next(told: &Receiver<Seen>) -> Option<Seen> {
    told.iter().find(|seen| *seen != Seen::Quick)
}

fn counts(of: c_int) -> rts_counts {
    let mut counts = rts_counts {
        size: size_of::<rts_counts>() as u32,
        ..rts_counts::default()
    };
    // SAFETY: it is as long as it says.
    assert_eq!(unsafe { rts_read(of, &raw mut counts) }, 0);
    counts
}

/// PDUs that are done without a look are done, and nobody asks for them again.
fn what_is_done_at_once_is_done(tell: &mut Sender<Seen>, told: &Receiver<Seen>) {
    let attributes = rts_attributes {
        batch: 16,
        quantum: 4,
        ..ATTRIBUTES
    };
    let rtu = run(attributes, whole, ptr::from_mut(tell).cast());
    assert_eq!(next(told), Some(Seen::Batch(4)));
    let alone = rts_set {
        bits: [1 << rtu, 0],
    };
    let mut idle = rts_set::default();
    // SAFETY: both sets are there.
    assert_eq!(unsafe { rts_sleep(&raw const alone, &raw mut idle, 0) }, 0);
    let counts = counts(rtu);
    assert_eq!((counts.calls, counts.pdus), (1, 16));
    assert_eq!(rts_close(rtu), 0);
}

fn a_descriptor_releases(tell: &Sender<Seen>, told: &Receiver<Seen>) {
    let (reader, mut writer) = std::io::pipe().unwrap();
    let by_descriptor = rts_attributes {
        flags: RTS_DESCRIPTOR,
        fd: reader.as_raw_fd(),
        ..ATTRIBUTES
    };
    let mut block = (tell.clone(), reader.try_clone().unwrap());
    let rtu = run(by_descriptor, fed, (&raw mut block).cast());
    // What is released by it is a duplicate.
    drop(reader);
    let next = || next(told);
    writer.write_all(b"ab").unwrap();
    assert_eq!(next(), Some(Seen::Bytes(2, b'a')));
    writer.write_all(b"c").unwrap();
    assert_eq!(next(), Some(Seen::Bytes(1, b'c')));
    drop(writer);
    assert_eq!(next(), Some(Seen::Bytes(0, 0)));
    assert_eq!(rts_close(rtu), 0);
}

#[test]
fn a_look_sees_who_waits_and_a_descriptor_releases() {
    // SAFETY: the structure is there.
    assert_eq!(unsafe { rts_start(&OPTIONS) }, 0);
    let (mut tell, told) = mpsc::channel();
    let pcb = (&raw mut tell).cast();
    let first_ns = laxity_now_ns() + 40_000_000;
    let urgent = rts_attributes {
        first_ns: first_ns + 10_000_000,
        ..ATTRIBUTES
    };
    let batch = rts_attributes {
        flags: RTS_PAUSES,
        first_ns,
        period_ns: 1_000_000_000,
        batch: 2,
        quantum: 2,
        ..ATTRIBUTES
    };
    run(urgent, quick, pcb);
    let batch = run(batch, long, pcb);
    // The quick one may come before the first quantum, and twice in a row, where this machine is late.
    let mut seen: Vec<Seen> = Vec::new();
    while seen.last() != Some(&Seen::Quantum) || seen.len() < 5 {
        match told.recv().unwrap() {
            Seen::Quick if matches!(seen.last(), None | Some(Seen::Quick)) => {}
            next => seen.push(next),
        }
    }
    assert_eq!(
        seen,
        [
            Seen::Quantum,
            Seen::Quick,
            Seen::Quantum,
            Seen::Quick,
            Seen::Quantum
        ]
    );
    let mut idle = rts_set::default();
    let alone = rts_set {
        bits: [1 << batch, 0],
    };
    // SAFETY: both sets are there.
    assert_eq!(unsafe { rts_sleep(&raw const alone, &raw mut idle, 0) }, 0);
    let counts = counts(batch);
    assert_eq!((counts.calls, counts.pdus, counts.yields), (1, 2, 2));

    what_is_done_at_once_is_done(&mut tell, &told);
    a_descriptor_releases(&tell, &told);
    assert_eq!(rts_end(), 0);
}
