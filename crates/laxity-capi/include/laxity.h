/* laxity: predictable execution for soft real-time work on ordinary Linux.
 *
 * A thread reserves so much processor time out of every so much, and reads back what it received:
 *
 *     laxity_request request = LAXITY_REQUEST_INIT;
 *     request.service_ns = 2000000;            // 2 ms
 *     request.period_ns = 8000000;             // out of every 8
 *     request.enforcer = LAXITY_SLOTS;
 *     laxity_handle handle;
 *     if (laxity_reserve(&request, &handle) != 0)
 *         fprintf(stderr, "%s\n", laxity_message());
 *
 * Functions that return int return 0, or a number of errno.h; laxity_message() then says what is wrong, and what would be right. All
 * may be called by several threads at once. C11 and C++17.
 *
 * install.sh, beside README.md in crates/laxity-capi, puts this file, liblaxity_capi.so, liblaxity_capi.a and laxity.pc below a prefix. With PREFIX/lib/pkgconfig in
 * PKG_CONFIG_PATH, where pkg-config does not look by itself:
 *
 *     cc program.c $(pkg-config --cflags --libs laxity) -Wl,-rpath,$(pkg-config --variable=libdir laxity)
 */
#ifndef LAXITY_H
#define LAXITY_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A reservation that a thread holds; 0 is none. A number that was given back, or was never given out, is an error (EBADF) and nothing worse. So are
 * those of its parent in a child after fork(): it holds nothing, gives nothing back however it ends, and may reserve for itself. It is an ordinary thread, and may run on its parent's
 * processor of slots alone until sched_setaffinity() allows it others. */
typedef uint64_t laxity_handle;

/* Enforcers. */
#define LAXITY_DEADLINE 0 /* the kernel's SCHED_DEADLINE: nothing outside the reservation */
#define LAXITY_SLOTS 1    /* time slots on one processor: X in every window of Y */

/* Flags. */
#define LAXITY_CONFINED 1 /* nothing outside the slots; system calls may return EINTR */

/* Any processor. */
#define LAXITY_ANY_PROCESSOR (-1)

/* What is asked for: service_ns out of every period_ns. */
typedef struct laxity_request {
    uint32_t size;       /* sizeof(laxity_request): the macro below sets it */
    uint32_t enforcer;   /* LAXITY_DEADLINE or LAXITY_SLOTS */
    uint64_t service_ns; /* X, in nanoseconds */
    uint64_t period_ns;  /* Y, in nanoseconds */
    int32_t processor;   /* of the slots, by the kernel's number, or LAXITY_ANY_PROCESSOR, as by LAXITY_DEADLINE always */
    uint32_t flags;      /* LAXITY_CONFINED, or 0 */
} laxity_request;

#define LAXITY_REQUEST_INIT { (uint32_t)sizeof(laxity_request), LAXITY_DEADLINE, 0, 0, LAXITY_ANY_PROCESSOR, 0 }

/* What was received, by the last look: at most three periods ago, or three milliseconds, by LAXITY_DEADLINE 60. */
typedef struct laxity_delivery {
    uint32_t size;                     /* sizeof(laxity_delivery): the macro below sets it */
    uint32_t halts_seen;               /* 1; or 0, as by LAXITY_DEADLINE: nobody looks whether the machine stands still, and what was short may be its doing */
    uint64_t service_ns;               /* processor time */
    uint64_t largest_gap_ns;           /* the longest for which the thread was kept from the processor though it wanted it; by deadline at most */
    uint64_t largest_gap_disturbed_ns; /* the same where the machine itself stood still */
    uint64_t periods;                  /* seen, and in which the machine did not stand still */
    uint64_t kept;                     /* of these, those with X less 5 % or more, or all that was wanted */
    uint64_t disturbed;                /* periods in which the machine stood still: not judged */
    uint64_t overruns;                 /* periods in which the thread used up what is reserved */
    uint64_t unseen;                   /* periods of which nobody saw what the thread had: not judged */
    uint64_t disturbed_short;          /* of the disturbed ones, those in which the thread is not seen to have had what is reserved */
    uint64_t most_ns;                  /* the most processor time from one look to the next, a period or so */
    uint64_t together;                 /* what is counted as a period are so many: by LAXITY_DEADLINE single ones of less than 20 ms are not seen */
    uint64_t events_lost;              /* records that were lost of those by which all this is known: it may be wrong */
    uint64_t largest_gap_possible_ns;  /* the gap may have been as long as this, and nobody knows; 0 where that did not happen */
} laxity_delivery;

#define LAXITY_DELIVERY_INIT { (uint32_t)sizeof(laxity_delivery), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* Reserves for the calling thread, which may hold one reservation at a time, and keeps the handle in *handle, which is as it was
 * where this fails. EINVAL: numbers that are no reservation, or a processor on which the thread may not run; EPERM: a right is missing; EBUSY: there is not so much left; EALREADY: it holds one;
 * EAGAIN: the machine was disturbed too much to measure what slots cost. Of the kernel's refusals the message names the one cause, and the remedy. */
int laxity_reserve(const laxity_request *request, laxity_handle *handle);

/* Gives a reservation back: the thread has the policy and the processors that it had before. Done by itself
 * where a thread ends without it. EPERM: another thread made it; EBADF: it was given back, or is that of the process that forked this one. */
int laxity_release(laxity_handle handle);

/* What was received by a reservation, to any thread. EBADF: there is none; ENODATA: this kernel does not tell. */
int laxity_read(laxity_handle handle, laxity_delivery *delivery);

/* Whether a reservation was enforced until now, to any thread: *enforced becomes 1 or 0. Where 0, the message names who could take it away, or
 * says why nobody can tell whether somebody did. EBADF: there is none. */
int laxity_enforced(laxity_handle handle, int *enforced);

/* What the last call of this thread that had something to say said, "" before there was one: never NULL, and of at most 2047 bytes. Each thread
 * has one place for it, which nobody is to free: there until the thread ends, and overwritten by this thread's next call that has something to say.
 * Copy what is to be kept, or is for another thread. */
const char *laxity_message(void);

/* Now, in nanoseconds of CLOCK_MONOTONIC. */
uint64_t laxity_now_ns(void);

/* Sleeps until this nanosecond of CLOCK_MONOTONIC, whatever signals are handled meanwhile. EINVAL: more than a century away. */
int laxity_sleep_until_ns(uint64_t instant_ns);

#ifdef __cplusplus
}
#endif

#endif
