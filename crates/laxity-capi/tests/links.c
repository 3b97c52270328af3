/* Upcalls that have to do with each other: chains, groups, what becomes of arrivals that find no room, and those of virtual time. Says what is not so, and ends with 1 then. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <rts.h>

#define MS UINT64_C(1000000)

/* What an upcall has seen. */
struct seen {
    uint32_t calls, most;
    uint64_t release_ns, arrived[4], dropped;
    const struct seen *before;
    int wrong;
};

static int failures;

static void expect(int holds, const char *what) {
    if (!holds) {
        printf("not so: %s (%s)\n", what, laxity_message());
        failures++;
    }
}

static void handle(rts_funargs *arg) {
    struct seen *seen = (struct seen *)arg->pcb;
    rts_smstr *call = arg->smstr;
    call->pdu_count = call->pdu_goal;
    seen->release_ns = call->release_ns;
    seen->dropped += call->dropped;
    if (seen->before != NULL && (seen->before->release_ns != call->origin_ns || seen->before->calls != seen->calls + 1))
        seen->wrong = 1;
    if (seen->before == NULL && call->origin_ns != call->release_ns)
        seen->wrong = 1;
    if (seen->calls < 4)
        seen->arrived[seen->calls] = call->arrived[0];
    if (++seen->calls == seen->most)
        call->asks = RTS_ASKS_SUSPEND;
}

static rts_attributes attributes_of(const char *name) {
    rts_attributes attributes = RTS_ATTRIBUTES_INIT;
    attributes.name = name;
    attributes.period_ns = 5 * MS;
    attributes.pdu_ns = MS / 10;
    return attributes;
}

static int idle(int rtu) {
    rts_set wanted = { { 0, 0 } };
    wanted.bits[rtu / 64] = UINT64_C(1) << (rtu % 64);
    return rts_sleep(&wanted, NULL, 0) == 0;
}

static void chain(void) {
    struct seen first = { 0, 0, 0, { 0 }, 0, NULL, 0 }, second = { 0, 5, 0, { 0 }, 0, &first, 0 };
    int one = -1, other = -1, none = -1;
    uint64_t bounds[2] = { 0, 0 };
    rts_attributes attributes = attributes_of("first");
    expect(rts_creat(&attributes, handle, &first, &one) == 0, "the first is made");
    attributes.name = "second";
    attributes.flags = RTS_AFTER;
    attributes.after = one;
    attributes.period_ns = 0;
    attributes.pdu_ns = MS;
    expect(rts_creat(&attributes, handle, &second, &other) == 0, "the second is made");
    attributes.pdu_ns = 4 * MS;
    expect(rts_creat(&attributes, handle, &second, &none) == EBUSY, "there is no time for a third");
    expect(rts_bound(one, &bounds[0]) == 0 && rts_bound(other, &bounds[1]) == 0, "both have bounds");
    expect(bounds[0] >= MS / 10 && bounds[1] >= 11 * MS / 10 && bounds[1] <= 5 * MS, "the bound of a chain is of all of it");
    expect(rts_bound(other, NULL) == EFAULT && rts_bound(100, bounds) == EBADF, "what is wrong is told");
    expect(rts_run(other) == 0 && rts_run(one) == 0 && idle(other), "both run");
    rts_counts counts = RTS_COUNTS_INIT;
    expect(rts_suspend(one) == 0 && rts_read(other, &counts) == 0, "the second is read");
    expect(counts.calls == 5 && !first.wrong && !second.wrong, "each call of the first releases the second");
    expect(counts.longest_chain_ns >= counts.longest_response_ns, "a chain takes no less than its last");
    expect(counts.longest_quantum_ns > 0 && counts.over_service == 0, "quanta are measured");
    expect(rts_close(one) == 0 && rts_close(other) == 0, "both are closed");
    expect(rts_creat(&attributes, handle, &second, &other) == EBADF, "nothing comes after one that is closed");
}

static void group(void) {
    struct seen seen[2] = { { 0, 3, 0, { 0 }, 0, NULL, 0 }, { 0, 3, 0, { 0 }, 0, NULL, 0 } };
    rts_budget budget = RTS_BUDGET_INIT;
    int number = -1, rtus[2] = { -1, -1 };
    expect(rts_group(&budget, &number) == EINVAL && number == 0, "nothing is no budget");
    budget.name = "sessions";
    budget.service_ns = 11 * MS;
    budget.period_ns = 10 * MS;
    expect(rts_group(&budget, &number) == EINVAL && strstr(laxity_message(), "no budget"), "nor is more than all");
    budget.service_ns = MS;
    expect(rts_group(&budget, &number) == 0 && number > 0, "a group is made");
    rts_attributes attributes = attributes_of("member");
    attributes.group = number;
    attributes.pdu_ns = 2 * MS;
    expect(rts_creat(&attributes, handle, &seen[0], &rtus[0]) == EBUSY, "a member has no more than its group");
    attributes.pdu_ns = MS / 10;
    attributes.deadline_ns = MS;
    expect(rts_creat(&attributes, handle, &seen[0], &rtus[0]) == EINVAL && strstr(laxity_message(), "period of 10ms"), "nor a deadline of its own");
    attributes.deadline_ns = 10 * MS;
    for (int member = 0; member < 2; member++)
        expect(rts_creat(&attributes, handle, &seen[member], &rtus[member]) == 0 && rts_run(rtus[member]) == 0, "a member runs");
    expect(idle(rtus[0]) && idle(rtus[1]), "both come to rest");
    rts_usage usage = RTS_USAGE_INIT;
    rts_set members = { { 0, 0 } };
    expect(rts_usage_of(number, &usage, &members) == 0 && usage.used_ns > 0, "what they took is told");
    expect(members.bits[0] == (UINT64_C(1) << rtus[0] | UINT64_C(1) << rtus[1]), "and who they are");
    expect(rts_usage_of(number, NULL, NULL) == EFAULT && rts_usage_of(0, &usage, NULL) == EBADF, "what is wrong is told");
    expect(rts_ungroup(number) == 0 && rts_ungroup(number) == EBADF, "its number is given back once");
    expect(rts_creat(&attributes, handle, &seen[0], &rtus[0]) == EBADF, "nobody joins then");
    expect(rts_run(rtus[1]) == 0 && rts_close(rtus[1]) == 0, "members go on");
}

static void queue(uint32_t when_full, uint64_t kept) {
    struct seen seen = { 0, 2, 0, { 0 }, 0, NULL, 0 };
    int rtu = -1;
    rts_attributes attributes = attributes_of("fed");
    attributes.flags = RTS_ARRIVALS;
    attributes.when_full = when_full;
    attributes.on_overrun = RTS_CATCH_UP;
    attributes.at_most = 9;
    expect(rts_creat(&attributes, handle, &seen, &rtu) == 0, "it is made");
    for (uint64_t number = 1; number <= 5; number++) {
        int full = number > 2 && when_full == RTS_REJECT;
        expect(rts_release(rtu, number, 0) == (full ? EAGAIN : 0), "who has it arrive is told, or not");
    }
    rts_counts counts = RTS_COUNTS_INIT;
    expect(rts_read(rtu, &counts) == 0 && counts.dropped == 3, "what is dropped is counted");
    expect(rts_run(rtu) == 0 && idle(rtu) && seen.dropped == 3, "and the handler is told");
    expect(seen.arrived[0] == kept && seen.arrived[1] == kept + 1, "these are kept");
    expect(rts_close(rtu) == 0, "it is closed");
}

/* While there is one, those of virtual time suspend it: who sleeps for it has called them. */
static int stops = -1;

static void serve_one(rts_funargs *arg) {
    struct seen *seen = (struct seen *)arg->pcb;
    rts_smstr *call = arg->smstr;
    if (call->pdu_goal != 1 || call->release_ns != 0 || rts_yield(arg) != -1 || rts_serve(NULL) != EDEADLK || rts_end() != EDEADLK)
        seen->wrong = 1;
    if (stops >= 0 && rts_suspend(stops) != 0)
        seen->wrong = 1;
    if (++seen->calls >= seen->most)
        call->asks = seen->calls == seen->most ? RTS_ASKS_SUSPEND : RTS_ASKS_END;
}

static void served(void) {
    struct seen seen[2] = { { 0, 3, 0, { 0 }, 0, NULL, 0 }, { 0, 3, 0, { 0 }, 0, NULL, 0 } }, timed = { 0, 0, 0, { 0 }, 0, NULL, 0 };
    int rtus[2] = { -1, -1 }, rtu = -1;
    uint64_t calls = 9, bound = 0;
    char name[8];
    expect(rts_creat_virtual(NULL, NULL, NULL, &rtu) == EFAULT && rts_creat_virtual(NULL, serve_one, &timed, NULL) == EFAULT, "it needs a handler, and a place for its descriptor");
    expect(rts_creat_virtual("\xff", serve_one, &timed, &rtu) == EINVAL && rtu == -1, "and a name that is one");
    for (int member = 0; member < 2; member++)
        expect(rts_creat_virtual("virtual", serve_one, &seen[member], &rtus[member]) == 0, "one of virtual time is made");
    expect(rts_name(rtus[0], name, sizeof(name)) == 0 && strcmp(name, "virtual") == 0, "it has its name");
    expect(rts_serve(&calls) == 0 && calls == 0, "it is not called before it runs");
    expect(rts_run(rtus[0]) == 0 && rts_run(rtus[1]) == 0 && rts_serve(&calls) == 0 && calls == 6, "both are called until they want no more");
    rts_counts counts = RTS_COUNTS_INIT;
    expect(rts_read(rtus[0], &counts) == 0 && counts.calls == 3 && counts.state == RTS_IS_SUSPENDED, "each as often as the other");
    expect(rts_release(rtus[0], 1, 2) == EINVAL && rts_bound(rtus[0], &bound) == EINVAL && !idle(rtus[0]), "it has no releases, and no bound");
    rts_attributes attributes = attributes_of("timed");
    attributes.flags = RTS_AFTER;
    attributes.after = rtus[0];
    expect(rts_creat(&attributes, handle, &timed, &rtu) == EINVAL, "nothing comes after one of virtual time");
    attributes.flags = 0;
    expect(rts_creat(&attributes, handle, &timed, &rtu) == 0 && rts_run(rtu) == 0, "one with a period runs");
    stops = rtu;
    expect(rts_run(rtus[0]) == 0 && idle(rtu) && seen[0].calls == 4, "who sleeps calls it");
    stops = -1;
    expect(rts_run(rtus[0]) == ESRCH && rts_suspend(rtus[0]) == ESRCH, "it has ended");
    expect(rts_close(rtus[0]) == 0 && rts_close(rtus[0]) == EBADF && rts_close(rtu) == 0, "it is closed once");
    expect(!seen[0].wrong && !seen[1].wrong, "its handler is told what it is told of");
    /* What is left, and active, ends with the executor. */
    expect(rts_run(rtus[1]) == 0, "the other one runs again");
}

/* What admission charges beside the work, of whoever has a structure that can say so. */
static void charged(rts_options options, uint32_t size, int error) {
    struct seen seen = { 0, 2, 0, { 0 }, 0, NULL, 0 };
    int rtu = -1;
    rts_attributes attributes = attributes_of("charged");
    options.size = size;
    expect(rts_start(&options) == 0, "it starts");
    expect(rts_creat(&attributes, handle, &seen, &rtu) == error, "it is charged what was asked for");
    expect(rts_end() == 0, "it ends");
}

static void by_deadline(rts_options options) {
    struct seen seen = { 0, 2, 0, { 0 }, 0, NULL, 0 };
    int rtu = -1;
    uint64_t bound = 9;
    rts_attributes attributes = attributes_of("due");
    options.policy = RTS_EDF;
    expect(rts_start(&options) == 0 && rts_creat(&attributes, handle, &seen, &rtu) == 0, "it is admitted by its deadline");
    expect(rts_bound(rtu, &bound) == EOPNOTSUPP && bound == 9, "and has no bound of its own");
    expect(rts_end() == 0, "it ends");
}

int main(void) {
    rts_options options = RTS_OPTIONS_INIT;
    options.rank = RTS_FAIR;
    options.events = 2;
    rts_options costly = options;
    costly.late_ns = 5 * MS;
    charged(costly, sizeof(rts_options), EBUSY);
    charged(costly, offsetof(rts_options, late_ns), 0);
    costly.late_ns = 0;
    costly.call_ns = 5 * MS;
    charged(costly, sizeof(rts_options), EBUSY);
    costly.call_ns = 0;
    costly.quantum_ns = 5 * MS;
    charged(costly, sizeof(rts_options), EBUSY);
    by_deadline(options);
    expect(rts_start(&options) == 0 && rts_version() == RTS_VERSION, "it starts");
    chain();
    group();
    queue(RTS_REJECT, 1);
    queue(RTS_WARN, 1);
    queue(RTS_DROP_OLDEST, 4);
    served();
    expect(rts_end() == 0, "it ends");
    expect(rts_serve(NULL) == ESRCH, "nobody is there to serve");
    return failures > 0;
}
