/* Reserves 2 ms out of every 8 for its own thread, works 1 ms of each, and prints what it received.
 *
 *     cc reserve.c $(pkg-config --cflags --libs laxity) -Wl,-rpath,$(pkg-config --variable=libdir laxity) -o reserve && ./reserve slots
 *
 * The argument names the enforcer: slots (as without one) or deadline. Exits 0, 1 where it fails, 2 where it is called wrongly, and 4 where it lacks a right.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <laxity.h>

static void work_for(uint64_t nanoseconds) {
    uint64_t until = laxity_now_ns() + nanoseconds;
    while (laxity_now_ns() < until) {
    }
}

int main(int count, char **arguments) {
    laxity_request request = LAXITY_REQUEST_INIT;
    request.service_ns = 2000000;
    request.period_ns = 8000000;
    request.enforcer = LAXITY_SLOTS;
    const char *enforcer = count > 1 ? arguments[1] : "slots";
    if (strcmp(enforcer, "deadline") == 0)
        request.enforcer = LAXITY_DEADLINE;
    if (count > 2 || (request.enforcer == LAXITY_SLOTS && strcmp(enforcer, "slots") != 0)) {
        fprintf(stderr, "reserve [slots|deadline]\n");
        return 2;
    }

    laxity_handle handle = 0;
    int error = laxity_reserve(&request, &handle);
    if (error != 0) {
        fprintf(stderr, "%s (%s)\n", laxity_message(), strerror(error));
        return error == EPERM ? 4 : 1;
    }

    uint64_t due = laxity_now_ns();
    for (int block = 0; block < 100; block++) {
        work_for(1000000);
        due += request.period_ns;
        laxity_sleep_until_ns(due);
    }

    laxity_delivery seen = LAXITY_DELIVERY_INIT;
    int enforced = 0;
    error = laxity_read(handle, &seen);
    if (error == 0)
        error = laxity_enforced(handle, &enforced);
    if (error != 0) {
        fprintf(stderr, "%s\n", laxity_message());
        return 1;
    }
    char counted[64] = "periods";
    if (seen.together > 1)
        snprintf(counted, sizeof(counted), "stretches of %" PRIu64 " periods", seen.together);
    printf("%s: %" PRIu64 " of %" PRIu64 " %s kept, largest gap %" PRIu64 " us, service %" PRIu64 " us, %" PRIu64 " overruns, %" PRIu64
           " records lost%s\n",
           enforced ? "enforced" : laxity_message(), seen.kept, seen.periods, counted, seen.largest_gap_ns / 1000, seen.service_ns / 1000,
           seen.overruns, seen.events_lost, seen.halts_seen ? "" : "; halts of the machine are not seen");

    /* What was given back is no handle any more. */
    if (laxity_release(handle) != 0 || laxity_release(handle) != EBADF)
        return 1;
    return 0;
}
