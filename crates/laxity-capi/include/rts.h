/* Real-time upcalls: periodic handlers of a process that take turns in one real-time thread.
 *
 * Gopalakrishnan, Parulkar, "Real-time Upcalls: A Mechanism to Provide Real-time Processing Guarantees", WUCS-95-06, 1995, section 6:
 * the calls have its names. A handler is called for a quantum of protocol data units (PDUs) at a time and is never interrupted by another, so what
 * handlers share they need not lock:
 *
 *     static void send_packets(struct rts_funargs *arg) {
 *         struct session *session = (struct session *)arg->pcb;
 *         while (arg->smstr->pdu_count < arg->smstr->pdu_goal && packet_waits(session)) {
 *             send_packet(session);
 *             arg->smstr->pdu_count++;
 *         }
 *     }
 *
 *     rts_attributes attributes = RTS_ATTRIBUTES_INIT;
 *     attributes.period_ns = 40000000;         // every 40 ms
 *     attributes.batch = 16;                   // sixteen PDUs,
 *     attributes.quantum = 4;                  // four between two looks whether somebody more urgent waits,
 *     attributes.pdu_ns = 50000;               // each of 50 us at most
 *     int rtu;
 *     if (rts_creat(&attributes, send_packets, &session, &rtu) != 0)
 *         fprintf(stderr, "%s\n", laxity_message());
 *
 * Functions that return int return 0, or a number of errno.h; laxity_message() then says what is wrong, and what would be right. All may be called by several
 * threads at once, and by handlers, but for those that wait: rts_creat(), rts_sleep(), rts_serve(), rts_bound(), rts_departed(), rts_settle() and rts_end() (EDEADLK there). What a handler asks is done after its quantum. The
 * other threads of a process may block, and its main thread may end: handlers are called all the same. rts_release(), rts_run(), rts_suspend(), rts_read() and rts_name() take no lock there, and rts_close() none that is held for longer than a look. Signals to the process
 * are for the application's own threads: those of the library block all but what an instruction itself causes, and so do a thread, and a program by posix_spawn(), that a handler starts. After fork() a child has no upcalls, and may make its own; one that a handler forks ends where the handler returns there, with status 0 as by _exit().
 *
 * Structures begin with their size, which says of what version they are: programs compiled with an older header go on with a newer library, and those compiled with a newer one work
 * with an older library as long as what they ask for was known then (E2BIG); a size that no version has is EINVAL, and a pointer that is not aligned, or is NULL and must not be, EFAULT. C11 and C++17. It is installed with laxity.h, and linked as that says.
 */
#ifndef LAXITY_RTS_H
#define LAXITY_RTS_H

#include <laxity.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this header; rts_version() tells the library's. 2: rts_yield(), RTS_DESCRIPTOR, rts_list(), rts_name(), rts_enforced(). 3: RTS_PAUSES, RTS_AFTER, rts_bound(), groups,
 * what becomes of arrivals that find no room. 4: rts_join(), rts_departed(), rts_settle(). 5: what admission charges beside the work, rts_creat_virtual(), rts_serve(). */
#define RTS_VERSION 5

/* Policies. */
#define RTS_RMDP 0 /* rate monotonic with delayed preemption */
#define RTS_EDF 1  /* earliest deadline first */

/* Ranks of the executor's thread. */
#define RTS_FIFO 0     /* SCHED_FIFO, at a priority */
#define RTS_RESERVED 1 /* a reservation */
#define RTS_FAIR 2     /* an ordinary thread: nothing is promised */

/* What becomes of the releases that come while a call is still at work. */
#define RTS_SKIP 0     /* they are missed */
#define RTS_CATCH_UP 1 /* the last of them, at_most in a row, are called late */
#define RTS_SUSPEND 2  /* the upcall is suspended */
#define RTS_END 3      /* the upcall ends */
#define RTS_ABORT 4    /* the process ends, by abort() */

/* Flags. */
#define RTS_ARRIVALS 1   /* rts_release() releases it, at least a period apart, and not time */
#define RTS_DESCRIPTOR 2 /* so does fd: once a period while it can be read, or is at its end. What there is to read the handler reads. An executor that is alone looks at it between calls: it may wait for the whole call of a less urgent upcall, which is charged under RTS_RMDP, and its release is when it was seen */
#define RTS_AFTER 4      /* the end of each call of the upcall `after` releases it. A call that its handler cuts short by what it asks releases nobody */
#define RTS_PAUSES 8     /* its handler may return at rts_yield() in the last quantum of a call, too; less is promised of it then */

/* What becomes of an arrival where as many wait as there is room for. All are counted, and the handler is told of them. */
#define RTS_REJECT 0      /* it is dropped, and rts_release() returns EAGAIN */
#define RTS_DROP_OLDEST 1 /* the one that has waited longest is dropped, and this one waits */
#define RTS_WARN 2        /* it is dropped, and the handler alone is told */

/* Upcalls of a process, those of virtual time with them: their descriptors are below this. */
#define RTS_MOST 127

/* What has become of an upcall. */
#define RTS_IS_SUSPENDED 0
#define RTS_IS_ACTIVE 1
#define RTS_IS_OVERRUN 2 /* suspended, because it overran */
#define RTS_IS_ENDED 3

/* What the executor of the process is to be. */
typedef struct rts_options {
    uint32_t size;              /* sizeof(rts_options): the macro below sets it */
    uint32_t policy;            /* RTS_RMDP or RTS_EDF */
    uint32_t rank;              /* RTS_FIFO, RTS_RESERVED or RTS_FAIR */
    uint32_t priority;          /* of RTS_FIFO, 1 to 99 */
    int32_t processor;          /* of RTS_FIFO and of rts_join(), by the kernel's number, or LAXITY_ANY_PROCESSOR */
    uint32_t events;            /* so many arrivals wait for each upcall that has them, 1 to 4096 */
    laxity_request reservation; /* of RTS_RESERVED */
    uint64_t late_ns;           /* admission reckons that a call begins so long after its release though nobody else is at work; 0 is 100000, and as long as threads here may put off the end of their turn. Since version 5, as the rest */
    uint64_t call_ns;           /* what it charges each call beside its work; 0 is 2000 */
    uint64_t quantum_ns;        /* what it charges each quantum beside that; 0 is 500. Who waits for a quantum of somebody less urgent is charged both */
} rts_options;

#define RTS_OPTIONS_INIT { (uint32_t)sizeof(rts_options), RTS_RMDP, RTS_FIFO, 90, LAXITY_ANY_PROCESSOR, 16, LAXITY_REQUEST_INIT, 0, 0, 0 }

/* Whose place the executor is to have among those of other processes: the coordinator's of a processor, which has the upcalls of all of them in one order, and admits them together. */
typedef struct rts_coordinator {
    uint32_t size;         /* sizeof(rts_coordinator): the macro below sets it */
    uint32_t reserved;     /* 0 */
    const char *name;      /* of this process, for `laxity upcalls list`, UTF-8; NULL is "upcalls" */
    const char *directory; /* of its socket; NULL is that of the environment's LAXITY_COORDINATOR_DIRECTORY, or $XDG_RUNTIME_DIR/laxity, or /run/laxity */
    const char *program;   /* started where there is none, as `PROGRAM upcalls serve`; NULL is that of the environment's LAXITY_COORDINATOR, or `laxity` beside the own executable or of the path */
} rts_coordinator;

#define RTS_COORDINATOR_INIT { (uint32_t)sizeof(rts_coordinator), 0, NULL, NULL, NULL }

/* What an upcall is to be. */
typedef struct rts_attributes {
    uint32_t size;        /* sizeof(rts_attributes): the macro below sets it */
    uint32_t flags;       /* RTS_ARRIVALS, RTS_DESCRIPTOR or RTS_AFTER, and RTS_PAUSES, or 0 */
    const char *name;     /* for messages, UTF-8; NULL is "upcall" */
    uint64_t first_ns;    /* its first release, in nanoseconds of CLOCK_MONOTONIC; 0 is a period after it runs first */
    uint64_t period_ns;   /* from release to release; of RTS_AFTER 0 is that of the one before */
    uint64_t deadline_ns; /* from a release, of RTS_AFTER from that of the first of its chain, to when its call is due; 0 is the period. More than that only of RTS_CATCH_UP with UINT32_MAX at_most, as the next may come to nothing else. In a group 0, or the group's period */
    uint64_t pdu_ns;      /* the most that a PDU takes */
    uint32_t batch;       /* PDUs a period */
    uint32_t quantum;     /* PDUs between two looks; of more than the batch, the batch */
    uint32_t on_overrun;  /* RTS_SKIP, ... */
    uint32_t at_most;     /* of RTS_CATCH_UP */
    int32_t fd;           /* of RTS_DESCRIPTOR: the library keeps a duplicate until the upcall is closed; from here on since version 2 */
    uint32_t when_full;   /* RTS_REJECT, ...; since version 3, as the rest */
    int32_t after;        /* of RTS_AFTER: the descriptor of the one that it comes after */
    int32_t group;        /* with whom it shares a budget, as rts_group() says; 0: nobody */
} rts_attributes;

#define RTS_ATTRIBUTES_INIT { (uint32_t)sizeof(rts_attributes), 0, NULL, 0, 0, 0, 0, 1, 1, RTS_SKIP, 0, -1, RTS_REJECT, 0, 0 }

/* What a group is to be. */
typedef struct rts_budget {
    uint32_t size;       /* sizeof(rts_budget): the macro below sets it */
    uint32_t reserved;   /* 0 */
    const char *name;    /* for messages, UTF-8; NULL is "group" */
    uint64_t service_ns; /* so much its upcalls have together */
    uint64_t period_ns;  /* of every so much */
} rts_budget;

#define RTS_BUDGET_INIT { (uint32_t)sizeof(rts_budget), 0, NULL, 0, 0 }

/* What the upcalls of a group have done together. */
typedef struct rts_usage {
    uint32_t size;     /* sizeof(rts_usage): the macro below sets it */
    uint32_t reserved; /* 0 */
    uint64_t used_ns;  /* what they took, on the clock */
    uint64_t waits;    /* quanta that waited for the next period */
} rts_usage;

#define RTS_USAGE_INIT { (uint32_t)sizeof(rts_usage), 0, 0, 0 }

/* What a handler and its executor tell each other of a call. */
typedef struct rts_smstr {
    uint32_t size;              /* of what the library knows of this */
    uint32_t pdu_count;         /* PDUs that are done in this call: the handler counts them up, to pdu_goal; less, and the call is over, unless yield_request is 1; more, up to batch, are done as well, but without a look: others may be late for them */
    uint32_t pdu_goal;          /* so many are to be done when the handler returns */
    uint32_t batch;             /* so many are to be done in this call */
    uint32_t yield_request;     /* 1 from when rts_yield() has seen that somebody more urgent waits, until the handler returns */
    uint32_t overruns;          /* 1: its own next release has come */
    uint32_t overran;           /* 1: the call before was still at work when this release came */
    uint32_t asks;              /* the handler may set RTS_ASKS_SUSPEND or RTS_ASKS_END, for after this quantum; whatever else it sets ends it, too */
    uint64_t missed;            /* releases between the call before and this one that came to nothing */
    uint64_t release_ns;        /* when it was to begin; on its grid */
    uint64_t began_ns;          /* when it began */
    uint64_t previous_ended_ns; /* when the call before ended; 0: there was none since it runs */
    uint64_t arrived[2];        /* what rts_release() was given */
    uint64_t origin_ns;         /* when the first of its chain was released; since version 3 */
    uint64_t dropped;           /* arrivals that found no room since the call before; since version 3 */
} rts_smstr;

#define RTS_ASKS_SUSPEND 1
#define RTS_ASKS_END 2

/* What a handler is called with, as the paper has it. It has no size, as only the library makes one, and it does not grow: what is new is in rts_smstr. */
typedef struct rts_funargs {
    void *pcb;        /* the protocol control block that rts_creat() was given */
    rts_smstr *smstr; /* the call, until the handler returns */
} rts_funargs;

typedef void (*rts_handler)(rts_funargs *arg);

/* A set of descriptors: bit d % 64 of bits[d / 64] is descriptor d. It has no size, as RTS_MOST says for good how many there are. */
typedef struct rts_set {
    uint64_t bits[2];
} rts_set;

/* What an upcall has done since it was made. */
typedef struct rts_counts {
    uint32_t size;                /* sizeof(rts_counts): the macro below sets it */
    uint32_t state;               /* RTS_IS_SUSPENDED, ... */
    uint64_t calls;               /* that have begun */
    uint64_t pdus;                /* that were done */
    uint64_t overruns;            /* calls that were at work when their next release came */
    uint64_t missed;              /* releases that came to nothing for that */
    uint64_t yields;              /* to somebody more urgent */
    uint64_t most_late_ns;        /* from a release to the begin of its call */
    uint64_t longest_response_ns; /* from a release to the end of its call */
    uint64_t longest_chain_ns;    /* the same from the release of the first of its chain; since version 3, as the rest */
    uint64_t longest_quantum_ns;  /* on the clock, with all that took the processor away meanwhile */
    uint64_t over_service;        /* calls with a quantum that took longer than was declared */
    uint64_t dropped;             /* arrivals that found no room */
    uint64_t late;                /* calls that ended, or were cut off, after their deadline; of members of a group none, since they wait for its budget */
} rts_counts;

#define RTS_COUNTS_INIT { (uint32_t)sizeof(rts_counts), RTS_IS_SUSPENDED, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* Starts the executor of the process as it is to be; without this, the first rts_creat() starts one as RTS_OPTIONS_INIT says. EALREADY: there is
 * one; EINVAL: no such policy, rank, priority or processor; EPERM: a right is missing, and the message says which and how to get it; EIO: its thread was not started; of RTS_RESERVED also what laxity_reserve() returns. */
int rts_start(const rts_options *options);

/* Starts the executor of the process among those of other processes. On one processor the upcalls of all of them take turns in one rate monotonic order, and are admitted together: rts_creat() is refused where an upcall of any
 * process would be late. A process that dies, is stopped or does not come back from a handler holds no other up; the last of these loses its executor, as rts_enforced() says. An upcall that takes more than it was admitted with is called behind those of all processes until it has
 * made up for that; or it waits for its next release, and what was said for overruns becomes of it, if that is RTS_SUSPEND, RTS_END or RTS_ABORT. The coordinator that sees to that is started where there is
 * none; it is waited for, ten seconds at the most. The options say its processor, RTS_RMDP, and RTS_FIFO at its priority, 90 as a rule, or RTS_FAIR where it serves ordinary threads. EALREADY: there is an executor; EINVAL: no such policy, rank, priority or processor, or one that is not for several processes; EPERM: a right
 * is missing; EIO: its thread was not started; ECONNREFUSED: there is no coordinator and none can be started, or it says no, or does not answer: the message says which. */
int rts_join(const rts_options *options, const rts_coordinator *coordinator);

/* Whether another process of the same coordinator that had upcalls has gone: *process becomes its number, or 0. It is told until rts_settle(); a process that has gone has what it had until all have settled
 * that, or for a second as a rule. ESRCH: there is no executor; EDEADLK: the caller is a handler. */
int rts_departed(int *process);

/* Whatever this process had with one that has gone is put in order: what that one had may be others'. EBADF: it has not gone, or is settled; ESRCH: there is no executor; EDEADLK: the caller is a handler. */
int rts_settle(int process);

/* Ends the executor, with all upcalls; none of their handlers runs any more when this returns 0. ETIMEDOUT: a handler has not returned for 10 s. None is called any more then, but all pcbs are in use, and there is no other executor, until
 * that has returned: ask again. EDEADLK: the caller is a handler. */
int rts_end(void);

/* Makes an upcall, which is not called before rts_run(), and keeps its descriptor in *rtu. EBUSY: it, or another one, would be late; the message names who, and
 * how long a PDU may take for it to fit. A quantum of those that are for several processes may be no longer than their coordinator says, which is EBUSY too. ENFILE: there are RTS_MOST; EINVAL: attributes that mean nothing; EPERM: among several processes a thread waits for what RTS_DESCRIPTOR names, which cannot be waited for, as a file on a disk, or has no right to the next higher priority; EMFILE: the process has no descriptors left for that; EBADF: fd is not open, or there is no such upcall to come after, or group; EDEADLK: the caller is a handler; EAGAIN: too many commands wait to be carried out, try again; ETIMEDOUT: a handler has not returned for 10 s; ECANCELED: the executor has ended, by itself or by rts_end(); ECONNREFUSED: the coordinator does not answer, or says no; where it starts the executor also
 * what rts_start() returns. One that was called and has ended or is closed counts until the executor has had nothing to do; where it would fit then, this waits for that. Other processes have the time of one that has ended when its own closes an upcall, or makes one once it counts no longer. */
int rts_creat(const rts_attributes *attributes, rts_handler handler, void *pcb, int *rtu);

/* Makes an upcall of virtual time, of this name, which may be NULL, and keeps its descriptor in *rtu: it has no period, no rank and no promise, and is not called before rts_run(). While it is active it is called over and over, as what the
 * calling thread is, in rts_sleep() and rts_serve(). Those of a process take turns, a call at a time, and are never at work at once; the executor's run beside them, so what they share with these wants a lock. Of rts_smstr the handler is told began_ns alone, with a pdu_goal and a batch of 1, none of
 * which is counted, and may set asks; it may call what waits, but rts_serve() and rts_end(). ENFILE: there are RTS_MOST; EINVAL: a name that is not UTF-8; ECANCELED: the executor has ended, by itself or by rts_end(); where it starts the executor also what rts_start() returns. */
int rts_creat_virtual(const char *name, rts_handler handler, void *pcb, int *rtu);

/* Calls upcalls of virtual time in the calling thread until none is active, or another thread calls one. *calls becomes how many calls that were; it may be NULL. ESRCH: there is no executor; EDEADLK: the caller is a handler, of virtual time or not. */
int rts_serve(uint64_t *calls);

/* Calls an upcall at its releases from now on; one of virtual time where a thread serves it. ESRCH: it has ended; EBADF: there is none; EAGAIN: too many commands wait to be carried out, try again; ETIMEDOUT: a handler has not returned for 10 s, and it is called once that has; ECANCELED: the executor has ended by itself, as rts_enforced() says. */
int rts_run(int rtu);

/* Does not call an upcall any more until rts_run(), on the same grid. When this returns, its handler is not at work; of one of virtual time a call that has begun goes on. ESRCH: it has ended; EBADF: there is none; EAGAIN: too many commands wait to be carried out, try again; ETIMEDOUT: its handler, or another one, has not returned for 10 s: it is suspended when that does; ECANCELED: the executor has ended by itself, as rts_enforced() says. */
int rts_suspend(int rtu);

/* Ends an upcall; when this returns, its handler is not at work and never will be, so its pcb is the caller's again, and its descriptor may be another's. EBADF: there is none; EAGAIN: too many commands wait to be carried out, try again;
 * ETIMEDOUT: its handler, or another one, has not returned for 10 s: it ends when that does, and until then its pcb is in use; ask again; EALREADY: it was asked before, and its handler, or another one, has not returned yet; or a handler asks while this one, of virtual time, is at work in another thread: it ends there, and until then its pcb is in use; ask again. */
int rts_close(int rtu);

/* Waits, like select, until one of these is not active: suspended or ended. *idle becomes those that are not. No longer than until this nanosecond of CLOCK_MONOTONIC, if it is not 0: then
 * *idle is empty. idle may be NULL. Meanwhile those of virtual time are called in this thread. EBADF: one of them is none, or of an executor that has been ended; ESRCH: no executor is there any more; EINVAL: one of them is of virtual time; EDEADLK: the caller is a handler. */
int rts_sleep(const rts_set *rtus, rts_set *idle, uint64_t until_ns);

/* Something has arrived for an upcall with RTS_ARRIVALS or RTS_DESCRIPTOR: releases it once. Takes no lock, and waits for nobody. EAGAIN: as many wait already as there is room for, of RTS_REJECT; EINVAL: time
 * releases it, or another's call, or it is of virtual time; EBADF: there is none; ESRCH: it is being closed; ECANCELED: the executor has ended by itself, as rts_enforced() says. */
int rts_release(int rtu, uint64_t first, uint64_t second);

/* What an upcall has done, and what has become of it; of one of virtual time its calls and its state. EBADF: there is none. */
int rts_read(int rtu, rts_counts *counts);

/* From the release of the first of its chain, or its own, to the end of its call, at the longest, beside all upcalls there are now: in nanoseconds, in *bound_ns. Of one in a group: when the
 * group's budget was to be had, from the begin of the group's period. EOPNOTSUPP: the order is by deadline, where no upcall has a bound of its own: each is over by its deadline; EINVAL: it is of virtual time; EBADF: there is none, or it is of an executor that has been ended; ESRCH: it has ended, or no executor is there any more; ECANCELED: the executor has ended by itself, as rts_enforced() says; EDEADLK: the caller is a handler; EBUSY: it may be late after all, as the message says; ECONNREFUSED: the coordinator does not answer, or says no. */
int rts_bound(int rtu, uint64_t *bound_ns);

/* Makes a group, whose upcalls together have a budget: admission counts that, and not what they ask for, and what is over waits for the next period. *group becomes its number, for
 * attributes. EINVAL: no budget, or more than the period; where it starts the executor also what rts_start() returns. */
int rts_group(const rts_budget *budget, int *group);

/* Gives a group's number back, which another may have then. Its upcalls go on, and have their budget together as long as there are any. EBADF: there is none. */
int rts_ungroup(int group);

/* What a group's upcalls have done together, and which they are: *rtus becomes those that were made, and not closed; it may be NULL. EBADF: there is none. */
int rts_usage_of(int group, rts_usage *usage, rts_set *rtus);

/* Whether somebody more urgent waits than the handler that asks, whose argument this is: 1 or 0; -1 where the caller is in no call with it. A handler need not ask, as the executor looks
 * after every quantum. One whose PDUs take long may, and return where it is 1, before pdu_goal, with what it has done in pdu_count: it is called again for the rest when nobody more urgent
 * waits. In the last quantum of a call it is 1 only for one with RTS_PAUSES. It costs a reading of the clock and a load, and no system call. 1 stays in yield_request, which nobody but this sets: who reads that field and never asks finds 0 for ever. When a quantum begins nobody more urgent waits, or that one would have been called. */
int rts_yield(const rts_funargs *arg);

/* Which upcalls there are, in *rtus: those that were made, and not closed. */
int rts_list(rts_set *rtus);

/* The name of an upcall, with a zero, in so many bytes from name on. ERANGE: it is longer; EBADF: there is none. */
int rts_name(int rtu, char *name, size_t room);

/* Whether the executor's thread still has the rank that was asked for, on the processors that it was started on: *enforced becomes 1 or 0, which it is also, after rts_join(), a tenth of a second after whoever guards its place does not look any more, as a coordinator that is stopped. Where 0, the message says why, also of one that has ended by itself: what could be done is rts_end(), and to start another. ESRCH: there is no executor. */
int rts_enforced(int *enforced);

/* RTS_VERSION of the library. */
uint32_t rts_version(void);

#ifdef __cplusplus
}
#endif

#endif
