/* A thread that holds a reservation forks: it is the parent's alone, and the child may have its own. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include "laxity.h"

#define CHECK(what)                                                                                                    \
    do {                                                                                                               \
        if (!(what)) {                                                                                                 \
            fprintf(stderr, "line %d: %s: %s\n", __LINE__, #what, laxity_message());                                   \
            _exit(1);                                                                                                  \
        }                                                                                                              \
    } while (0)

static laxity_request request = LAXITY_REQUEST_INIT;
static laxity_handle held;
static cpu_set_t processors;

static void work_for(uint64_t nanoseconds) {
    uint64_t until = laxity_now_ns() + nanoseconds;
    while (laxity_now_ns() < until) {
    }
}

static uint64_t received(laxity_handle handle) {
    laxity_delivery seen = LAXITY_DELIVERY_INIT;
    CHECK(laxity_read(handle, &seen) == 0);
    return seen.service_ns;
}

static void exits(void) {
}

/* What its parent holds is nothing to it. */
static void has_none(void) {
    laxity_delivery seen = LAXITY_DELIVERY_INIT;
    int enforced;
    CHECK(laxity_release(held) == EBADF);
    CHECK(laxity_read(held, &seen) == EBADF);
    CHECK(laxity_enforced(held, &enforced) == EBADF);
}

/* The processors of slots are inherited, as by all that a holder starts. */
static laxity_handle reserves(void) {
    CHECK(sched_getscheduler(0) == SCHED_OTHER);
    CHECK(sched_setaffinity(0, sizeof(processors), &processors) == 0);
    laxity_handle own = 0;
    CHECK(laxity_reserve(&request, &own) == 0);
    CHECK(own != 0 && own != held);
    work_for(200000000);
    CHECK(received(own) > 0);
    has_none();
    return own;
}

static void has_its_own(void) {
    laxity_handle own = reserves();
    CHECK(laxity_release(own) == 0);
    CHECK(laxity_release(own) == EBADF);
    CHECK(sched_getscheduler(0) == SCHED_OTHER);
}

static void exits_with_its_own(void) {
    reserves();
}

/* A child does this, and ends as programs do: at once. */
static void in_child(void (*does)(void)) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        alarm(20);
        does();
        exit(0);
    }
    int status = -1;
    while (waitpid(child, &status, 0) == -1)
        CHECK(errno == EINTR);
    if (status != 0)
        fprintf(stderr, "the child ended with %d\n", status);
    CHECK(status == 0);
}

/* As another laxity looks whether the thread is held. */
static int is_claimed(void) {
    char path[32];
    snprintf(path, sizeof(path), "/proc/%d", (int)getpid());
    int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(directory >= 0);
    int is_held = flock(directory, LOCK_EX | LOCK_NB) == -1 && errno == EWOULDBLOCK;
    close(directory);
    return is_held;
}

int main(int count, char **arguments) {
    void (*const children[])(void) = { exits, has_none, has_its_own, exits_with_its_own, exits };
    if (count < 2 || (strcmp(arguments[1], "deadline") != 0 && strcmp(arguments[1], "slots") != 0 && strcmp(arguments[1], "confined") != 0))
        return 2;
    request.service_ns = 2000000;
    request.period_ns = 8000000;
    request.enforcer = strcmp(arguments[1], "deadline") == 0 ? LAXITY_DEADLINE : LAXITY_SLOTS;
    request.flags = strcmp(arguments[1], "confined") == 0 ? LAXITY_CONFINED : 0;
    cpu_set_t after;
    CHECK(sched_getaffinity(0, sizeof(processors), &processors) == 0);

    CHECK(laxity_reserve(&request, &held) == 0);
    laxity_handle kept = held;
    CHECK(laxity_reserve(&request, &kept) == EALREADY);
    CHECK(kept == held);
    for (size_t child = 0; child < sizeof(children) / sizeof(children[0]); child++) {
        in_child(children[child]);
        CHECK(is_claimed());
        /* Its parent receives what it did. */
        uint64_t before = received(held);
        work_for(200000000);
        CHECK(received(held) > before);
    }
    CHECK(laxity_reserve(&request, &kept) == EALREADY);
    CHECK(laxity_release(held) == 0);
    CHECK(!is_claimed());
    CHECK(sched_getscheduler(0) == SCHED_OTHER);
    CHECK(sched_getaffinity(0, sizeof(after), &after) == 0 && CPU_EQUAL(&after, &processors));
    return 0;
}
