/* One upcall of a process to which something is done: the argument says what, and with "fifo" behind it the executor is real-time. Each call writes a line: its release, when it began, and
 * how many releases were missed before it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <rts.h>

#define PERIOD_NS 2000000
#define LONG_PERIOD_NS 100000000

/* After so many calls the process ends, or never if 0. */
static uint64_t calls, last_call;

static void tick(rts_funargs *arg) {
    rts_smstr *call = arg->smstr;
    dprintf(STDOUT_FILENO, "%" PRIu64 " %" PRIu64 " %" PRIu64 "\n", call->release_ns, call->began_ns, call->missed);
    call->pdu_count = call->pdu_goal;
    if (++calls == last_call)
        exit(0);
}

/* The third call is the last until it runs again. */
static void tick_thrice(rts_funargs *arg) {
    arg->smstr->pdu_count = arg->smstr->pdu_goal;
    if (++*(int *)arg->pcb == 3)
        arg->smstr->asks = RTS_ASKS_SUSPEND;
}

static int wakes[2];

/* Does not return before something is written for it. */
static void hang(rts_funargs *arg) {
    char byte;
    arg->smstr->pdu_count = arg->smstr->pdu_goal;
    dprintf(STDOUT_FILENO, "hangs\n");
    if (read(wakes[0], &byte, 1) == 1)
        *(int *)arg->pcb = 1;
}

static void must(int error, const char *what) {
    if (error == 0)
        return;
    fprintf(stderr, "%s: %s (%s)\n", what, laxity_message(), strerror(error));
    _exit(1);
}

static void expect(int holds, const char *what) {
    if (holds)
        return;
    fprintf(stderr, "not so: %s\n", what);
    _exit(1);
}

static void start(int fifo) {
    rts_options options = RTS_OPTIONS_INIT;
    options.rank = fifo ? RTS_FIFO : RTS_FAIR;
    must(rts_start(&options), "start");
}

static int create_of(uint64_t period_ns, uint64_t pdu_ns, rts_handler handler, void *pcb) {
    rts_attributes attributes = RTS_ATTRIBUTES_INIT;
    attributes.period_ns = period_ns;
    attributes.pdu_ns = pdu_ns;
    int rtu = -1;
    must(rts_creat(&attributes, handler, pcb, &rtu), "create");
    must(rts_run(rtu), "run");
    return rtu;
}

static int create(rts_handler handler, void *pcb) {
    return create_of(PERIOD_NS, 50000, handler, pcb);
}

static void run_thrice(void) {
    int count = 0;
    int rtu = create(tick_thrice, &count);
    rts_set wanted = { { UINT64_C(1) << rtu, 0 } }, idle = { { 0, 0 } };
    must(rts_sleep(&wanted, &idle, 0), "sleep");
    expect(count == 3 && idle.bits[0] == wanted.bits[0], "three calls");
}

/* What the process has: the policy of this thread, locked memory, threads, and open files that keep processors awake. */
static void tell_state(void) {
    FILE *status = fopen("/proc/self/status", "r");
    expect(status != NULL, "there is /proc");
    char line[256];
    unsigned long locked_kib = 0, threads = 0;
    while (fgets(line, sizeof(line), status) != NULL) {
        if (sscanf(line, "VmLck: %lu", &locked_kib) != 1)
            sscanf(line, "Threads: %lu", &threads);
    }
    fclose(status);
    int awake = 0;
    for (int fd = 0; fd < 64; fd++) {
        char path[32], target[64] = "";
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        if (readlink(path, target, sizeof(target) - 1) > 0)
            awake += strcmp(target, "/dev/cpu_dma_latency") == 0;
    }
    printf("policy %d, locked %d, threads %lu, awake %d\n", sched_getscheduler(0), locked_kib > 0, threads, awake);
    fflush(stdout);
}

/* What a child is to find: no upcalls of its parent's, and room for its own. */
static int child(int rtu, int fifo) {
    tell_state();
    rts_set there = { { 1, 1 } };
    expect(rts_run(rtu) == EBADF && rts_close(rtu) == EBADF, "a child has no upcalls");
    int number = 0;
    uint64_t bound = 0;
    expect(rts_suspend(rtu) == EBADF && rts_release(rtu, 0, 0) == EBADF && rts_bound(rtu, &bound) == EBADF, "nor may it ask for them");
    expect(rts_enforced(&number) == ESRCH && rts_departed(&number) == ESRCH && rts_settle(1) == ESRCH, "it has no executor");
    must(rts_list(&there), "list");
    expect(there.bits[0] == 0 && there.bits[1] == 0, "a child lists none");
    start(fifo);
    run_thrice();
    tell_state();
    must(rts_end(), "end");
    tell_state();
    return 0;
}

static void await(pid_t process) {
    int status = -1;
    expect(waitpid(process, &status, 0) == process && WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child ended well");
}

/* An upcall is closed whose handler hangs; then that returns. */
static void close_hanging(void) {
    int has_returned = 0;
    expect(pipe(wakes) == 0, "there is a pipe");
    int rtu = create_of(LONG_PERIOD_NS, LONG_PERIOD_NS / 4, hang, &has_returned);
    char byte;
    expect(read(STDIN_FILENO, &byte, 1) == 1, "the handler hangs");
    expect(rts_close(rtu) == ETIMEDOUT && strstr(laxity_message(), "does not come back"), "closing it is given up");
    rts_set there = { { 0, 0 } };
    expect(rts_close(rtu) == EALREADY && strstr(laxity_message(), "has not returned"), "that it was asked for is known");
    expect(rts_list(&there) == 0 && there.bits[0] == UINT64_C(1) << rtu, "it is there until then");
    expect(write(wakes[1], "", 1) == 1, "the handler goes on");
    int error;
    while ((error = rts_close(rtu)) == EALREADY)
        sched_yield();
    must(error, "close");
    expect(has_returned, "its handler has returned by then");
    expect(rts_close(rtu) == EBADF, "it is closed");
    /* What it had is another's. */
    must(rts_close(create_of(LONG_PERIOD_NS, LONG_PERIOD_NS / 10 * 9, tick_thrice, &has_returned)), "close");
}

/* The executor is ended while a handler hangs; then that returns. */
static void end_hanging(void) {
    int has_returned = 0, counts[3] = { 0, 0, 0 }, rtu;
    expect(pipe(wakes) == 0, "there is a pipe");
    for (int other = 0; other < 3; other++)
        create(tick_thrice, &counts[other]);
    rtu = create(hang, &has_returned);
    char byte;
    expect(read(STDIN_FILENO, &byte, 1) == 1, "the handler hangs");
    uint64_t before = laxity_now_ns();
    expect(rts_end() == ETIMEDOUT && strstr(laxity_message(), "does not come back"), "its end is given up");
    expect(laxity_now_ns() - before < UINT64_C(19000000000), "all are waited for at once");
    rts_options options = RTS_OPTIONS_INIT;
    expect(!has_returned && rts_run(rtu) == ECANCELED && rts_start(&options) == EALREADY, "what it has is in use");
    expect(write(wakes[1], "", 1) == 1, "the handler goes on");
    must(rts_end(), "end");
    expect(has_returned && rts_run(rtu) == EBADF, "none of its handlers runs any more");
    start(0);
}

static pid_t forked_by_handler;

static void fork_once(rts_funargs *arg) {
    arg->smstr->pdu_count = arg->smstr->pdu_goal;
    arg->smstr->asks = RTS_ASKS_SUSPEND;
    forked_by_handler = fork();
    if (forked_by_handler == 0) {
        sigset_t blocked;
        int hears = pthread_sigmask(SIG_SETMASK, NULL, &blocked) == 0 && sigismember(&blocked, SIGTERM) == 0;
        _exit(hears && sched_getscheduler(0) == SCHED_OTHER && rts_end() == 0 ? 0 : 1);
    }
}

/* A signal that the program's own threads block comes to who asks for it, and to no handler. */
static void take_signal(void) {
    sigset_t own;
    sigemptyset(&own);
    sigaddset(&own, SIGUSR1);
    expect(pthread_sigmask(SIG_BLOCK, &own, NULL) == 0 && kill(getpid(), SIGUSR1) == 0, "it is sent");
    struct timespec limit = { 60, 0 };
    expect(sigtimedwait(&own, NULL, &limit) == SIGUSR1, "it is taken");
}

static void *come_and_go(void *ends) {
    int count = 0;
    while (!__atomic_load_n((int *)ends, __ATOMIC_SEQ_CST))
        must(rts_close(create(tick_thrice, &count)), "close");
    return NULL;
}

/* Whatever another thread is at just then, a child may make its own upcalls. */
static void fork_often(void) {
    int ends = 0;
    pthread_t other;
    expect(pthread_create(&other, NULL, come_and_go, &ends) == 0, "there is a thread");
    for (int count = 0; count < 300; count++) {
        pid_t process = fork();
        if (process == 0) {
            alarm(30);
            start(0);
            _exit(rts_end());
        }
        await(process);
    }
    __atomic_store_n(&ends, 1, __ATOMIC_SEQ_CST);
    expect(pthread_join(other, NULL) == 0, "it ends");
}

/* Where the coordinator that is started says that it is, or is told to go: it has nothing open of whoever starts it. */
static int fifo_of(const char *program, const char *what) {
    char path[4096];
    snprintf(path, sizeof path, "%s.%s", program, what);
    expect(mkfifo(path, 0600) == 0 || errno == EEXIST, "there is a fifo");
    return open(path, O_RDWR | O_CLOEXEC);
}

static int has_joined;

static void *join(void *program) {
    rts_options options = RTS_OPTIONS_INIT;
    options.rank = RTS_FAIR;
    options.processor = 0;
    rts_coordinator coordinator = RTS_COORDINATOR_INIT;
    coordinator.directory = "/nonexistent";
    coordinator.program = program;
    expect(rts_join(&options, &coordinator) == ECONNREFUSED, "there is no coordinator");
    __atomic_store_n(&has_joined, 1, __ATOMIC_SEQ_CST);
    return NULL;
}

/* Neither a fork nor who only looks waits for a coordinator that another thread waits for. */
static void fork_while_joining(char *program) {
    int started = fifo_of(program, "started"), go = fifo_of(program, "go"), enforced;
    pthread_t other;
    expect(pthread_create(&other, NULL, join, program) == 0, "there is a thread");
    char byte;
    expect(read(started, &byte, 1) == 1, "a coordinator is started");
    pid_t process = fork();
    if (process == 0)
        _exit(0);
    await(process);
    expect(rts_enforced(&enforced) == ESRCH, "there is no executor yet");
    expect(!__atomic_load_n(&has_joined, __ATOMIC_SEQ_CST), "it is waited for still");
    expect(write(go, "", 1) == 1 && pthread_join(other, NULL) == 0, "there is none");
}

int main(int count, char **arguments) {
    const char *what = count > 1 ? arguments[1] : "";
    int fifo = count > 2 && strcmp(arguments[2], "fifo") == 0;
    tell_state();
    if (strcmp(what, "state") == 0)
        return 0;
    if (strcmp(what, "upcalls") == 0) {
        /* As a coordinator is started. */
        char byte;
        return write(fifo_of(arguments[0], "started"), "", 1) == 1 && read(fifo_of(arguments[0], "go"), &byte, 1) == 1 ? 1 : 2;
    }
    if (strcmp(what, "joins") == 0) {
        fork_while_joining(arguments[0]);
        return 0;
    }
    start(fifo);
    last_call = strcmp(what, "main-ends") == 0 ? 400 : 0;
    if (strcmp(what, "gives-back") == 0) {
        run_thrice();
        tell_state();
        must(rts_end(), "end");
        tell_state();
        start(fifo);
        run_thrice();
        execl(arguments[0], arguments[0], "state", (char *)NULL);
        return 1;
    }
    if (strcmp(what, "forks") == 0) {
        int own = create(fork_once, NULL);
        rts_set wanted = { { UINT64_C(1) << own, 0 } };
        must(rts_sleep(&wanted, NULL, 0), "sleep");
        await(forked_by_handler);
        pid_t process = fork();
        if (process == 0)
            _exit(child(own, fifo));
        await(process);
        run_thrice();
        must(rts_end(), "end");
        return 0;
    }
    if (strcmp(what, "hangs") == 0 || strcmp(what, "ends-hanging") == 0) {
        if (strcmp(what, "hangs") == 0)
            close_hanging();
        else
            end_hanging();
        run_thrice();
        must(rts_end(), "end");
        return 0;
    }
    if (strcmp(what, "signals") == 0 || strcmp(what, "forks-often") == 0) {
        if (strcmp(what, "signals") == 0)
            take_signal();
        else
            fork_often();
        run_thrice();
        must(rts_end(), "end");
        return 0;
    }
    create(tick, NULL);
    if (strcmp(what, "main-ends") == 0)
        pthread_exit(NULL);
    /* Blocks until whoever started it has seen enough. */
    char byte;
    return read(STDIN_FILENO, &byte, 1) == 0 ? 0 : 1;
}
