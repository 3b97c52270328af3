/* A control loop of 250 Hz: half a millisecond of work every four. Prints how many rounds ended after the next one was due, and of each of these, on
 * standard error, how long it had waited for a processor: one that waited for none was held up by the machine itself.
 *
 *     cc -O1 loop.c -o loop && ./loop SECONDS
 */
#define _POSIX_C_SOURCE 200809L
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* What the kernel counts of this thread's waits for a processor, in nanoseconds; -1 where it does not. */
static int64_t waited_ns(void) {
    static FILE *account;
    long long service = 0, waited = -1;
    if (account == NULL) {
        account = fopen("/proc/thread-self/schedstat", "r");
    }
    if (account != NULL) {
        rewind(account);
        if (fscanf(account, "%lld %lld", &service, &waited) != 2) {
            waited = -1;
        }
        fflush(account);
    }
    return waited;
}

enum { PERIOD_NS = 4000000, WORK_NS = 500000 };

static int64_t read_ns(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

int main(int count, char **arguments) {
    int64_t rounds = (count > 1 ? atoi(arguments[1]) : 5) * INT64_C(250);
    int64_t due = read_ns(CLOCK_MONOTONIC) + PERIOD_NS;
    int64_t late = 0;
    int64_t before = waited_ns();
    for (int64_t round = 0; round < rounds; round++, due += PERIOD_NS) {
        struct timespec at = {due / 1000000000, due % 1000000000};
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) != 0) {
        }
        int64_t until = read_ns(CLOCK_THREAD_CPUTIME_ID) + WORK_NS;
        while (read_ns(CLOCK_THREAD_CPUTIME_ID) < until) {
        }
        int64_t over = read_ns(CLOCK_MONOTONIC) - (due + PERIOD_NS);
        int64_t waited = waited_ns();
        if (over > 0) {
            late++;
            fprintf(stderr, "round %lld: %lld us late, waited %lld us\n", (long long)round, (long long)over / 1000, (long long)(waited - before) / 1000);
        }
        before = waited;
    }
    printf("%lld\n", (long long)late);
    return 0;
}
